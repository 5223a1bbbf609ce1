"""An OpenAI-compatible server that plays scenarios, for states that no model can be made to show on demand.

In a test: `with running() as scripted: scripted.scenario("dies", after=3); …scripted.base_url…`
Alone: `python -m tests.scripted_server --port 9000 --scenario reasoning --option rate=50`.

Which scenario a chat request gets: the one in its last user message ("[[long_thought tokens=300 rate=50]]"), else the one that its
model names ("scenario:dies"), else the one set on the server.
"""

import argparse
import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from tests.scripted_scenarios import EVERYWHERE, SCENARIOS, marker, options_of, play
from tests.scripted_script import Ask, Refusal, Script
from tests.scripted_wire import frames, recut, tokenized, whole

MODEL_ID = "/models/moonshotai/Kimi-K2.5"
_MODELS_ANSWERS = ("models_empty", "models_slow", "models_not_a_list", "models_not_json")


@dataclass
class Recorded:
    """A request as it came in. sent: chunks of the reply that went out; aborted_at: when the client closed it (time.monotonic)."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float
    sent: int = 0
    aborted_at: float | None = None
    ended_at: float | None = None


@dataclass
class Scripted:
    """The server as a test sees it. Settings may be changed between requests.

    owned_by: as in /v1/models. api_key: what requests under /v1 must carry. missing: routes that answer 404 ("/tokenize", "/version").
    sees: whether messages may hold images.
    opens_thought: whether the template ends a thinking prompt with `<think>`. models: the cards of /v1/models.
    """

    base_url: str = ""
    owned_by: str = "vllm"
    api_key: str | None = None
    missing: set[str] = field(default_factory=set)
    opens_thought: bool = True
    sees: bool = True
    max_model_len: int | None = 8192
    model_ids: list[str] = field(default_factory=lambda: [MODEL_ID])
    requests: list[Recorded] = field(default_factory=list)
    aborts: list[Recorded] = field(default_factory=list)
    running: int = 0
    name: str = "reasoning"
    options: dict[str, Any] = field(default_factory=dict)
    models_answer: str = ""
    models_delay_s: float = 0.0
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")

    def scenario(self, name: str, **options: Any) -> None:
        """Sets what requests get that name no scenario themselves. `models_slow` takes `seconds`."""
        if name in _MODELS_ANSWERS:
            self.models_answer, self.models_delay_s = name, float(options.get("seconds", 0.0))
            return
        if name not in SCENARIOS:
            raise KeyError(name)
        play(name, Ask({}), options)  # a wrong option fails here, in the test, and not in the server's thread
        self.name, self.options, self.models_answer, self.models_delay_s = name, options, "", 0.0

    def reset(self) -> None:
        """Everything but the address as at the start, for a server that several tests share."""
        fresh = Scripted(self.base_url)
        with self.changed:
            for one in fields(self):
                if one.name not in ("changed", "running"):
                    setattr(self, one.name, getattr(fresh, one.name))

    @property
    def chats(self) -> list[Recorded]:
        """The recorded chat and text completions."""
        return [request for request in self.requests if request.method == "POST" and request.path.endswith("/completions")]

    async def aborted(self, count: int = 1, timeout_s: float = 5.0) -> list[Recorded]:
        """Waits until `count` requests were closed by their clients. Raises TimeoutError."""
        return await asyncio.to_thread(self._wait, lambda: len(self.aborts) >= count, timeout_s)

    async def arrived(self, count: int = 1, timeout_s: float = 5.0) -> list[Recorded]:
        """Waits until `count` completions were asked for. Raises TimeoutError."""
        await asyncio.to_thread(self._wait, lambda: len(self.chats) >= count, timeout_s)
        return self.chats

    def _wait(self, until: Any, timeout_s: float) -> list[Recorded]:
        with self.changed:
            if not self.changed.wait_for(until, timeout_s):
                raise TimeoutError(f"not within {timeout_s} s; {len(self.chats)} completions, {len(self.aborts)} aborts")
            return list(self.aborts)


class ScriptedApp:
    """The ASGI application. Plain ASGI, since it has to see when a client goes away before the first byte."""

    def __init__(self, scripted: Scripted) -> None:
        self.scripted = scripted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            body = await request.json() if request.method == "POST" else None
        except ValueError:
            body = None
        recorded = Recorded(request.method, request.url.path, dict(request.headers), body, time.monotonic())
        with self.scripted.changed:
            self.scripted.requests.append(recorded)
            self.scripted.changed.notify_all()
        if recorded.path in ("/v1/chat/completions", "/v1/completions") and isinstance(body, dict):
            response = self._refused(recorded)
            if response is None:
                await self._complete(recorded, receive, send)
                return
        else:
            response = await self._aside(recorded)
        await response(scope, receive, send)

    def _refused(self, recorded: Recorded) -> Response | None:
        scripted = self.scripted
        if recorded.path in scripted.missing:
            return JSONResponse({"detail": "Not Found"}, 404)
        if not scripted.sees and "image_url" in str(recorded.body):
            message = f"{scripted.model_ids[0]} is not a multimodal model"
            return JSONResponse({"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}, 400)
        needs_key = scripted.api_key is not None and recorded.path.startswith("/v1")
        if needs_key and recorded.headers.get("authorization") != f"Bearer {scripted.api_key}":
            return JSONResponse({"error": "Unauthorized"}, 401)
        return None

    async def _aside(self, recorded: Recorded) -> Response:
        scripted = self.scripted
        refused = self._refused(recorded)
        if refused is not None:
            return refused
        if scripted.name in EVERYWHERE:
            answer = play(scripted.name, Ask({}), scripted.options)
            assert isinstance(answer, Refusal)
            return _response(answer)
        body = recorded.body if isinstance(recorded.body, dict) else {}
        match recorded.path:
            case "/v1/models":
                await asyncio.sleep(scripted.models_delay_s)
                return self._models()
            case "/v1/completions" | "/v1/chat/completions":
                return JSONResponse({"detail": "Method Not Allowed"}, 405)
            case "/health" | "/ping":
                return Response(status_code=200)
            case "/version":
                return JSONResponse({"version": "0.32.0"})
            case "/metrics":
                running = f'vllm:num_requests_running{{engine="0",model_name="{scripted.model_ids[0]}"}} {float(scripted.running)}\n'
                return PlainTextResponse("# TYPE vllm:num_requests_running gauge\n" + running)
            case "/tokenize":
                return JSONResponse(tokenized(body, opens_thought=scripted.opens_thought) | {"max_model_len": scripted.max_model_len})
            case "/detokenize":
                return JSONResponse({"prompt": "".join(map(chr, body.get("tokens") or []))})
        return JSONResponse({"detail": "Not Found"}, 404)

    def _models(self) -> Response:
        match self.scripted.models_answer:
            case "models_empty":
                return JSONResponse({"object": "list", "data": []})
            case "models_not_a_list":
                return JSONResponse({"status": "ok"})
            case "models_not_json":
                return PlainTextResponse("it works")
        scripted = self.scripted
        shared = {"object": "model", "created": 1_760_000_000, "owned_by": scripted.owned_by, "parent": None, "permission": []}
        length = {} if scripted.max_model_len is None else {"max_model_len": scripted.max_model_len}
        cards = [{"id": name, "root": name} | shared | length for name in scripted.model_ids]
        return JSONResponse({"object": "list", "data": cards})

    def _play(self, ask: Ask) -> tuple[str, Script | Refusal]:
        messages = ask.body.get("messages") or []
        said = next((str(message.get("content")) for message in reversed(messages) if message.get("role") == "user"), "")
        marked = marker(said or str(ask.body.get("prompt", "")))
        model = str(ask.body.get("model", "")).removeprefix("scenario:")
        if marked is not None:
            name, options = marked
        elif model in SCENARIOS:
            name, options = model, {}
        else:
            name, options = self.scripted.name, self.scripted.options
        return name, play(name, ask, options)

    async def _complete(self, recorded: Recorded, receive: Receive, send: Send) -> None:
        ask, raw = Ask(recorded.body), recorded.path == "/v1/completions"
        name, answer = self._play(ask)
        model = str(ask.body.get("model"))
        if isinstance(answer, Refusal):
            await _send_whole(send, _response(answer))
            return
        sending = asyncio.ensure_future(self._reply(recorded, answer, ask, model, raw, ask.stream and name != "ignores_stream", send))
        watching = asyncio.ensure_future(_gone(receive))
        self.scripted.running += 1
        try:
            await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.scripted.running -= 1
            with self.scripted.changed:
                recorded.ended_at = time.monotonic()
                if not sending.done():
                    recorded.aborted_at = recorded.ended_at
                    self.scripted.aborts.append(recorded)
                self.scripted.changed.notify_all()
            sending.cancel()
            watching.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)

    async def _reply(self, recorded: Recorded, script: Script, ask: Ask, model: str, raw: bool, stream: bool, send: Send) -> None:
        loop = asyncio.get_running_loop()
        if not stream:
            await asyncio.sleep(script.silence_s + (len(script.deltas) / script.rate if script.rate else 0.0))
            await _send_whole(send, JSONResponse(whole(script, ask, model, raw=raw)))
            return
        if script.silent_headers:
            await asyncio.sleep(script.silence_s)
        chunks = frames(script, ask, model, raw=raw)
        if script.cut_bytes:
            chunks = recut(chunks, script.cut_bytes)
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if script.silence_s and not script.silent_headers:
            await asyncio.sleep(script.silence_s)
        start, step = loop.time(), 1 / script.rate if script.rate else 0.0
        for number, chunk in enumerate(chunks):
            # Deadlines, not pauses: what one chunk was late, the next makes up.
            wait = start + number * step - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            recorded.sent = number + 1
        if script.dies_after is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        # Otherwise the response stays unfinished, and uvicorn closes the socket.


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _response(answer: Refusal) -> Response:
    headers = dict(answer.headers)
    if answer.content_type == "application/json":
        return JSONResponse(answer.body, answer.status, headers)
    return Response(answer.body, answer.status, headers, answer.content_type)


async def _send_whole(send: Send, response: Response) -> None:
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body})


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def running(port: int = 0, **settings: Any) -> Iterator[Scripted]:
    """The server on a thread of its own, on 127.0.0.1 and (with 0) a free port. settings: fields of `Scripted`."""
    scripted = Scripted(**settings)
    bound = socket.create_server(("127.0.0.1", port))
    scripted.base_url = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
    config = uvicorn.Config(ScriptedApp(scripted), log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    server = _Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="scripted-server", daemon=True)
    thread.start()
    try:
        if not server.ready.wait(10):
            raise RuntimeError("the scripted server did not start")
        yield scripted
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        bound.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--scenario", default="reasoning", choices=sorted((*SCENARIOS, *_MODELS_ANSWERS)))
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the scenario; may be repeated")
    parser.add_argument("--owned-by", default="vllm")
    parser.add_argument("--api-key")
    given = parser.parse_args()
    with running(given.port, owned_by=given.owned_by, api_key=given.api_key) as scripted:
        scripted.scenario(given.scenario, **dict(options_of(given.option)))
        print(f"{given.scenario} on {scripted.base_url}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
