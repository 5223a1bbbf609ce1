"""The requests in a file of JSON lines: one whole chat request a line, as K2 Vendor Verifier's samples.jsonl has them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sound import sound

MOST_LINE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Request:
    """index: its line in the file, from 1. body: as it is sent, but for the model."""

    index: int
    body: dict[str, Any]

    @property
    def tools(self) -> list[dict[str, Any]]:
        given = self.body.get("tools")
        return [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def hash(self) -> str:
        """Of what is sent; the same for the same request."""
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class RequestFile:
    """sha256: of the file's bytes."""

    path: Path
    requests: tuple[Request, ...]
    sha256: str


def read_requests(path: Path, fields: Mapping[str, Any] | None = None) -> RequestFile:
    """fields: of the body, in place of those in the file; None leaves one out.

    As the verifier does, messages of the role `_input` become system messages, and empty lines are passed over.
    Raises Failure: qa.unreadable (path, error), qa.request_wrong (path, line, problem), qa.no_requests (path).
    """
    found: list[Request] = []
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES + 1), b""), 1):
                digest.update(line)
                if line.strip(b"\xef\xbb\xbf \t\r\n"):
                    found.append(Request(number, _body(path, number, line, fields or {})))
    except OSError as error:
        raise Failure("qa.unreadable", path=path, error=error.strerror or error) from error
    if not found:
        raise Failure("qa.no_requests", path=path)
    return RequestFile(path, tuple(found), digest.hexdigest())


def _body(path: Path, number: int, line: bytes, fields: Mapping[str, Any]) -> dict[str, Any]:
    def wrong(problem: object) -> Failure:
        return Failure("qa.request_wrong", path=path, line=number, problem=problem)

    if len(line) > MOST_LINE_BYTES:
        raise wrong(f"more than {MOST_LINE_BYTES // 2**20} MB")
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise wrong("is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise wrong(f"is no JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError):
        raise wrong("is no JSON that can be read") from None
    if not isinstance(value, dict):
        raise wrong("a chat request is an object")
    messages = value.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise wrong("messages: a list of objects is needed")
    if value.get("tools") is not None and not isinstance(value["tools"], list):
        raise wrong("tools: a list is needed")
    body = {name: each for name, each in (value | dict(fields)).items() if name != "model" and each is not None}
    body["messages"] = [_message(message) for message in messages]
    return body


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    found = message | {"role": "system"} if message.get("role") == "_input" else dict(message)
    return found | {"content": sound(content)} if isinstance(content, str) else found
