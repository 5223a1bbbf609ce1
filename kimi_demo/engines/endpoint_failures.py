"""What went wrong between us and a server → a `Failure` that a person can act on. Never with the API key in it."""

import json
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from kimi_demo.dialect.failure import Failure

_MAX_MESSAGE = 300

# What servers write when the prompt does not fit: vLLM 0.32 (renderers/params.py, v1/engine/input_processor.py), older vLLM and OpenAI,
# Moonshot (MoonshotAI/kimi-cli#2011), SGLang. Where both numbers are named, the groups hold them.
_TOO_LONG = (
    re.compile(r"maximum context length is (?P<limit>\d+) tokens.*?prompt contains (?:at least )?(?P<prompt>\d+) input tokens", re.S),
    re.compile(r"maximum context length is (?P<limit>\d+) tokens.*?\((?P<prompt>\d+) in the messages", re.S),
    re.compile(r"maximum context length is (?P<limit>\d+) tokens.*?resulted in (?P<prompt>\d+) tokens", re.S),
    re.compile(r"prompt \(length (?P<prompt>\d+)\) .*?maximum model length of (?P<limit>\d+)", re.S),
    re.compile(r"Input length \((?P<prompt>\d+)\) exceeds model's maximum context length \((?P<limit>\d+)\)"),
    re.compile(r"exceeded model token limit: (?P<limit>\d+) ?\(requested: (?P<prompt>\d+)\)"),
    re.compile(r"input \((?P<prompt>\d+) tokens\) is longer than the model's context length \((?P<limit>\d+) tokens\)"),
    re.compile(r"maximum context length|longer than the maximum model length|context_length_exceeded|exceeded model token limit"),
)
_ANSWER_TOO_LONG = re.compile(r"max_(?:completion_)?tokens=(?P<asked>\d+) cannot be greater than \w+=(?P<limit>\d+)")


@dataclass(frozen=True)
class Where:
    """The server that a request went to, as far as a message about it needs. `secret` is blotted out of everything it says."""

    address: str
    model: str = ""
    secret: str | None = None
    connect_timeout_s: float = 5.0
    silence_timeout_s: float = 600.0

    def clean(self, text: str) -> str:
        """`text` on one line, cut to a readable length, without the key."""
        if self.secret:
            text = text.replace(self.secret, "…")
        text = " ".join(text.split())
        return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"


def failure_of(error: Exception, where: Where) -> Failure:
    """The failure that `error` (of the openai SDK, of httpx2 below it, or of reading a reply) stands for.

    Raises `error` again where it is none of these: then the mistake is ours, and must not pass for the server's.
    """
    import httpx2
    import openai

    if isinstance(error, Failure):
        return error
    if isinstance(error, openai.APIStatusError):
        return _of_status(error.status_code, error.body, error.response, where)
    chain = list(_chain(error))
    if any(isinstance(link, openai.APITimeoutError | httpx2.TimeoutException) for link in chain):
        if any(isinstance(link, httpx2.ConnectTimeout) for link in chain):
            return Failure("endpoint.connect_timeout", address=where.address, seconds=f"{where.connect_timeout_s:g}")
        return Failure("endpoint.silent", address=where.address, seconds=f"{where.silence_timeout_s:g}")
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError | ssl.SSLError):
        return _of_connection(chain, where)
    if isinstance(error, openai.APIError):  # an error event in the stream
        return _of_words(_words(error.body) or error.message, where) or Failure(
            "endpoint.error_event", address=where.address, message=where.clean(_words(error.body) or error.message)
        )
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return Failure("endpoint.bad_reply", address=where.address)
    if isinstance(error, UnicodeEncodeError):
        return Failure("endpoint.broken_text")
    if isinstance(error, RuntimeError) and "closed" in str(error):
        return Failure("endpoint.closed", address=where.address)
    if isinstance(error, openai.OpenAIError | httpx2.HTTPError | httpx2.InvalidURL | OSError):
        return Failure("endpoint.unreachable", address=where.address, error=where.clean(f"{type(error).__name__}: {error}"))
    raise error


def _of_status(status: int, body: object, response: Any, where: Where) -> Failure:
    if 300 <= status < 400:
        target = str(response.headers.get("location", "?"))
        return Failure("endpoint.redirect", address=where.address, target=where.clean(target))
    if status in (401, 403):
        if where.secret is None:
            return Failure("endpoint.needs_key", address=where.address)
        return Failure("endpoint.wrong_key" if status == 401 else "endpoint.forbidden", address=where.address)
    page = "html" in response.headers.get("content-type", "")
    words = "" if page else _words(body)
    message = where.clean(words) or str(status)
    if status == 404 or (status == 405 and page):
        if "model" in words.lower():
            return Failure("endpoint.no_such_model", address=where.address, model=where.model)
        return Failure("endpoint.no_such_route", address=where.address, route=urlsplit(str(response.request.url)).path)
    if status == 429:
        return Failure("endpoint.busy", address=where.address)
    if status == 503:
        return Failure("endpoint.loading", address=where.address)
    if status >= 500:
        return Failure("endpoint.server_error", address=where.address, status=status, message=message)
    return _of_words(words, where) or Failure("endpoint.rejected", address=where.address, status=status, message=message)


def _of_words(words: str, where: Where) -> Failure | None:
    """Failures that only the server's own words tell apart."""
    if '"auto" tool choice requires' in words:
        return Failure("endpoint.no_auto_tool_choice", address=where.address)
    if "thinking_token_budget" in words:
        return Failure("endpoint.no_thinking_budget", address=where.address)
    if asked := _ANSWER_TOO_LONG.search(words):
        return Failure("endpoint.max_tokens_too_large", max_tokens=asked["asked"], limit=asked["limit"])
    for pattern in _TOO_LONG:
        if found := pattern.search(words):
            numbers = found.groupdict()
            if not numbers:
                return Failure("endpoint.prompt_too_long_uncounted", address=where.address)
            return Failure("endpoint.prompt_too_long", tokens=numbers["prompt"], limit=numbers["limit"])
    return None


def _of_connection(chain: list[BaseException], where: Where) -> Failure:
    import httpx2

    for link in chain:
        if isinstance(link, ssl.SSLError):
            reason = getattr(link, "verify_message", "") or (link.reason or str(link)).replace("_", " ").lower()
            return Failure("endpoint.tls", address=where.address, reason=where.clean(reason))
        if isinstance(link, socket.gaierror):
            return Failure("endpoint.unknown_host", host=urlsplit(where.address).hostname or where.address)
        if isinstance(link, ConnectionRefusedError):
            return Failure("endpoint.refused", address=where.address)
    if any(isinstance(link, httpx2.ReadError | httpx2.RemoteProtocolError | httpx2.WriteError) for link in chain):
        return Failure("endpoint.broke_off")
    last = chain[-1]
    return Failure("endpoint.unreachable", address=where.address, error=where.clean(str(last) or type(last).__name__))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error`, what caused it, and so on; of a group of errors (one per address of a host) every one."""
    waiting, seen = [error], set[int]()
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += getattr(link, "exceptions", ())
        waiting += [next_link for next_link in (link.__cause__, link.__context__) if next_link is not None]


def _words(body: object) -> str:
    """What the server said, out of the shapes in which servers say it: {"message"}, {"error"}, {"detail"}, a string."""
    if isinstance(body, str):
        return body
    if isinstance(body, dict):
        for name in ("message", "error", "detail"):
            if body.get(name):
                return _words(body[name]) if not isinstance(body[name], list) else json.dumps(body[name], ensure_ascii=False)
    return ""


def rejects_stream_options(error: Exception) -> bool:
    """Whether a server turned a request down because of its `stream_options`."""
    import openai

    if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 422):
        return False
    told = json.dumps(error.body, default=str)
    return "stream_options" in told or "continuous_usage_stats" in told


def rejects_budget(error: Exception) -> bool:
    """Whether a server turned a request down because it has no means to limit the thought."""
    import openai

    return isinstance(error, openai.APIStatusError) and error.status_code in (400, 422) and "thinking_token_budget" in _words(error.body)
