"""Any OpenAI-compatible server: finds its model, streams its replies as events."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import Event, Remark
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.chunks import ChunkReader, ContentOpens
from kimi_demo.engines.endpoint_discovery import Served, ask_kind, ask_models, has_completions, opens_thought
from kimi_demo.engines.endpoint_failures import Where, failure_of, rejects_budget, rejects_stream_options
from kimi_demo.engines.endpoint_http import make_client, make_http, request_options, usable_key
from kimi_demo.engines.endpoint_kind import Kind, Wire
from kimi_demo.engines.endpoint_prompt import Tokens, rendered, tokens_of
from kimi_demo.engines.endpoint_url import candidates, root_of
from kimi_demo.engines.link_local import refuse_link_local
from kimi_demo.engines.port import ModelInfo
from kimi_demo.engines.request_label import request_headers
from kimi_demo.settings import EndpointKind

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response
    from openai import AsyncOpenAI, AsyncStream

SILENCE_TIMEOUT_S = 600.0
"""How long a server may say nothing: a long prompt behind a full queue takes minutes before its first token."""

_ASK_TIMEOUT_S = 5.0


class Endpoint:
    """A connection to one server and one of its models; a `ChatPort`. Made by `connect`, ended by `aclose`; bound to its event loop.

    info: the model that answers. models: all that the server lists. kind: how the server is spoken to. base_url: as found, with `/v1`.
    has_raw: whether it has text completions. takes_budget: whether it limits the thought; None until that is known.
    as_sent: set it, and what the server calls content is the answer, a thought in it or not: for who wants to see what a server does.
    """

    def __init__(
        self, http: "AsyncClient", client: "AsyncOpenAI", where: Where, served: Served, kind: Kind, opens: bool | None, has_raw: bool
    ) -> None:
        self.info: ModelInfo = served.info
        self.models: tuple[ModelInfo, ...] = served.models
        self.kind: Kind = kind
        self.base_url: str = where.address
        self._http = http
        self._client = client
        self._where = where
        self._options: Any = request_options(where)
        self._wire = Wire.of(kind, served.info.id, served.owner)
        self._opens = opens
        self.has_raw: bool = has_raw
        self.takes_budget: bool | None = None if kind == "vllm" else False
        self.as_sent = False
        self._parses: bool | None = None
        self._never_thinks = False

    @classmethod
    async def connect(
        cls,
        base_url: str,
        api_key: str | None = None,
        kind: EndpointKind = "auto",
        connect_timeout_s: float = 5.0,
        *,
        model: str | None = None,
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
    ) -> "Endpoint":
        """Asks the server for its models (once) and, with kind "auto", what kind of server it is.

        connect_timeout_s: seconds for the connection, and again for the list of models. model: one of the listed ids; None: the first.
        Raises `Failure` with a code of the `endpoint.` family.
        """
        key = usable_key(api_key)
        bases = candidates(base_url)
        await refuse_link_local(bases[0], connect_timeout_s)
        first: Failure | None = None
        for base in bases:
            where = Where(base, model or "", key, connect_timeout_s, silence_timeout_s)
            http = make_http(where)
            try:
                served = await ask_models(http, where, model)
                found = kind if kind != "auto" else await ask_kind(http, where, served)
                opens = await opens_thought(http, where, served) if found == "vllm" else None
                has_raw = found != "moonshot" and await has_completions(http, where)
                where = Where(base, served.info.id, where.secret, connect_timeout_s, silence_timeout_s)
                return cls(http, make_client(http, where), where, served, found, opens, has_raw)
            except BaseException as error:
                await http.aclose()
                if not isinstance(error, Failure):
                    raise
                first = first or error
                # Only "there is no such thing here" says that the address may be meant without /v1.
                if error.code not in ("endpoint.no_such_route", "endpoint.web_page", "endpoint.not_openai"):
                    raise first from None
        assert first is not None  # `candidates` gives at least one
        raise first

    @property
    def renders(self) -> bool:
        """Whether it says what its chat template makes of a conversation."""
        return self.kind == "vllm" and self._opens is not None

    def body(self, request: ChatRequest) -> dict[str, object]:
        """The JSON that `stream` sends. (What a server has once rejected, `stream_options` or a budget, is left out from then on.)"""
        return self._wire.chat_body(self._within(request))

    def raw_body(self, prompt: str, sampling: Sampling, *, as_rendered: bool = False) -> dict[str, object]:
        """The JSON that `stream_raw` sends."""
        body = self._wire.raw_body(prompt, sampling)
        return body | {"add_special_tokens": False} if as_rendered and self.kind == "vllm" else body

    def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """One reply as events: ThoughtDelta, AnswerDelta, ToolCallDelta, Usage; the last two are Usage(final) and Finished.

        A Remark comes before them where the server showed that something of its start is missing.
        Close it (`aclose`) or cancel the task that awaits it, and the request is closed at once, before the first token too.
        Raises `Failure`; the events that came before stay true.
        """
        return self._stream("/chat/completions", lambda: self._wire.chat_body(self._within(request)), self._reader(request), request)

    def stream_raw(
        self, prompt: str, sampling: Sampling, *, in_thought: bool = False, as_rendered: bool = False
    ) -> AsyncGenerator[Event, None]:
        """A text completion of `prompt` as it stands, without template: every character as AnswerDelta, marks included.

        in_thought: the prompt ends inside a thought, which the text goes on with: up to `</think>` it is ThoughtDelta.
        as_rendered: the prompt is a template's work and has its own beginning; the tokenizer must not put another before it.
        """
        reader = ChunkReader("thought", goes_on=True) if in_thought else ChunkReader()
        return self._stream("/completions", lambda: self.raw_body(prompt, sampling, as_rendered=as_rendered), reader)

    async def render(self, request: ChatRequest) -> str | None:
        """The prompt that the chat template makes of `request`, as text; None where the server does not say."""
        return await rendered(self._post, self._wire.tokenize_body(request)) if self.renders else None

    async def tokens_of(self, prompt: str) -> Tokens | None:
        """The tokens of a raw prompt; None where the server does not say."""
        return await tokens_of(self._post, self.info.id, prompt) if self.kind == "vllm" else None

    async def complete_chat(self, request: ChatRequest) -> list[Event]:
        """The same reply in one piece. Asked for where a streamed one lost its tool calls (vllm#54701: unstreamed they are right)."""
        import httpx2
        from openai import BadRequestError, UnprocessableEntityError

        reader = self._reader(request)
        post = partial(self._client.post, "/chat/completions", cast_to=httpx2.Response, options=self._options)
        try:
            try:
                response = await post(body=self._wire.chat_body(self._within(request), stream=False))
            except (BadRequestError, UnprocessableEntityError) as error:
                if not rejects_budget(error) or self.takes_budget is False:
                    raise
                self.takes_budget = False
                response = await post(body=self._wire.chat_body(self._within(request), stream=False))
            reply = await _whole(response, self._where)
            events = [event for event in reader.read(reply) if getattr(event, "final", True)] + reader.end()
        except Exception as error:
            raise await self._counted(failure_of(error, self._where), request) from None
        self._learn(reader)
        return events

    async def count_tokens(self, request: ChatRequest) -> int | None:
        """Tokens of the rendered prompt, tools included, counted by the server; None where it does not offer that (vLLM does)."""
        if self.kind != "vllm":
            return None
        reply = await self._post("/tokenize", self._wire.tokenize_body(request))
        count = reply.get("count") if isinstance(reply, dict) else None
        return count if isinstance(count, int) else None

    async def version(self) -> str | None:
        """The server's own version, by vLLM's /version; None where it does not say."""
        reply = await self._ask("GET", "/version")
        try:
            told = reply.json() if reply is not None and reply.status_code == 200 else None
        except ValueError:
            return None
        version = told.get("version") if isinstance(told, dict) else None
        return version if isinstance(version, str) else None

    async def healthy(self) -> bool:
        """Whether the server answers now: by /health where it has one, otherwise by its list of models."""
        reply = await self._ask("GET", "/health")
        if reply is not None and reply.status_code in (404, 405, 401, 403):
            reply = await self._ask("GET", self.base_url + "/models")
        return reply is not None and reply.status_code == 200

    async def metrics(self) -> str | None:
        """What the server's /metrics says, as text; None where it has none."""
        reply = await self._ask("GET", "/metrics")
        return reply.text if reply is not None and reply.status_code == 200 else None

    async def look(self, route: str, timeout_s: float, body: object = None) -> tuple[int, str] | None:
        """(status, text) of `route` beside the API ("/metrics") or, with its address, of the API; None where no answer came in time.

        body: what is posted; without it, GET.
        """
        import httpx2

        url = route if "://" in route else root_of(self.base_url) + route
        try:
            async with asyncio.timeout(timeout_s):  # httpx counts every piece of an answer anew
                reply = await self._http.request("GET" if body is None else "POST", url, json=body, timeout=timeout_s)
                return reply.status_code, reply.text
        except (httpx2.HTTPError, TimeoutError, RuntimeError, UnicodeError):
            return None

    async def aclose(self) -> None:
        """Closes the connection and every request that is still open on it."""
        await self._http.aclose()

    def _within(self, request: ChatRequest) -> ChatRequest:
        """`request` without what this server is known not to take."""
        if self.takes_budget is False and request.sampling.thinking_token_budget is not None:
            return replace(request, sampling=request.sampling.model_copy(update={"thinking_token_budget": None}))
        return request

    async def _post(self, route: str, body: dict[str, Any]) -> Any:
        """The JSON answer to a short question beside the API; None where there is none."""
        reply = await self._ask("POST", route, body)
        try:
            return reply.json() if reply is not None and reply.status_code == 200 else None
        except ValueError:
            return None

    async def _ask(self, method: str, route: str, body: object = None) -> "Response | None":
        """A short question beside the API; None where no answer came."""
        import httpx2

        url = route if "://" in route else root_of(self.base_url) + route
        try:
            return await self._http.request(method, url, json=body, timeout=_ASK_TIMEOUT_S)
        except (httpx2.HTTPError, RuntimeError, UnicodeEncodeError):
            return None

    def _reader(self, request: ChatRequest) -> ChunkReader:
        return ChunkReader(self._content_opens(request.thinking))

    def _content_opens(self, thinking: bool) -> ContentOpens:
        """What `content` begins with on this server, by what it has shown until now."""
        if self.as_sent or not thinking or self._parses or self.kind == "moonshot":
            return "answer"
        if self.kind == "openai" or self._opens is False or self._never_thinks:
            return "marked"
        return "thought"

    def _learn(self, reader: ChunkReader) -> None:
        if reader.parses is not None:
            self._parses, self._never_thinks = reader.parses, False
        # Where the template could not be asked, one reply that ended without a thought is all there is to go by.
        if reader.repeated and self._opens is None:
            self._never_thinks = True

    async def _stream(
        self, route: str, body: Callable[[], dict[str, Any]], reader: ChunkReader, request: ChatRequest | None = None
    ) -> AsyncGenerator[Event, None]:
        """The events of one request. `read` costs no pydantic model per token: the SDK hands the parsed JSON through (cast_to=object)."""
        read = reader.read
        try:
            async with await self._open(route, body) as chunks:
                if not _is_event_stream(chunks.response):
                    # A server that ignores `stream` answers in one piece; a web page is no answer.
                    for event in read(await _whole(chunks.response, self._where)):
                        yield event
                else:
                    async for chunk in chunks:
                        for event in read(chunk):
                            yield event
                last = reader.end()
                for remark in self._remarks(reader, request):
                    yield remark
                for event in last:
                    yield event
        except Exception as error:
            for event in reader.broken():
                yield event
            # `from None`: a server's message may repeat the key, and a chained traceback would print it.
            raise await self._counted(failure_of(error, self._where), request) from None
        self._learn(reader)
        if (
            request is not None
            and self.kind == "vllm"
            and self.takes_budget is None
            and self._within(request).sampling.thinking_token_budget is not None
        ):
            self.takes_budget = True

    def _remarks(self, reader: ChunkReader, request: ChatRequest | None) -> list[Remark]:
        """What the reply has shown of how the server was started."""
        if request is None:
            return []
        found = [Remark("no_reasoning_parser")] if reader.parses is False and self.kind == "vllm" else []
        if request.sampling.thinking_token_budget is not None and self.takes_budget is False:
            found.append(Remark("budget_not_sent"))
        return found

    async def _counted(self, failure: Failure, request: ChatRequest | None) -> Failure:
        """A prompt that is too long, with its true length: vLLM stops counting one token after the limit."""
        limit = self.info.max_model_len
        if request is None or limit is None or not failure.code.startswith("endpoint.prompt_too_long"):
            return failure
        tokens = await self.count_tokens(request)
        if tokens is None or tokens < limit:
            return failure
        return Failure("endpoint.prompt_too_long", tokens=tokens, limit=limit)

    async def _open(self, route: str, body: Callable[[], dict[str, Any]]) -> "AsyncStream[object]":
        """Sends the request; once more with less if the server rejects `stream_options` or a thinking budget."""
        from openai import AsyncStream, BadRequestError, UnprocessableEntityError

        label = request_headers() if self.kind == "vllm" else {}
        options = self._options | {"headers": self._options.get("headers", {}) | label}
        post = partial(self._client.post, route, cast_to=object, options=options, stream=True, stream_cls=AsyncStream[object])
        while True:
            try:
                return cast("AsyncStream[object]", await post(body=body()))
            except (BadRequestError, UnprocessableEntityError) as error:
                if rejects_budget(error) and self.takes_budget is not False:
                    self.takes_budget = False
                    continue
                weaker = self._wire.asking_less()
                if weaker is None or not rejects_stream_options(error):
                    raise
                self._wire = weaker


def _is_event_stream(response: "Response") -> bool:
    kind = response.headers.get("content-type", "")
    return "json" not in kind and "html" not in kind


async def _whole(response: "Response", where: Where) -> object:
    """A reply that came in one piece. Raises `Failure` or JSONDecodeError where it is none."""
    if "html" in response.headers.get("content-type", ""):
        raise Failure("endpoint.web_page", address=where.address)
    await response.aread()
    reply = response.json()
    if not (isinstance(reply, dict) and reply.get("choices")):
        raise Failure("endpoint.bad_reply", address=where.address)
    return cast(object, reply)
