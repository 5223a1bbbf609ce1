"""A hub on this machine that speaks Hugging Face's protocol and ModelScope's, with the faults that a test asks for.

Enough of each for the real `huggingface_hub` and `modelscope` clients: the listing, and files with ranges.
"""

import asyncio
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = "moonshotai/Tiny"
_PIECE = 64 * 1024


@dataclass
class LocalHub:
    """files: path → contents. token: what a client must send to see anything, None for a public repository.

    breaks: path → how often the connection is cut in the middle of it (-1: always). short: files that come shorter than listed.
    wrong: files whose contents differ from their checksum: path → how many times. status: path (or "listing") → what is answered instead.
    rate: bytes a second of each file, None for no limit. listed: path → size in the listing, where it is not the true one.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    token: str | None = None
    breaks: dict[str, int] = field(default_factory=dict)
    short: set[str] = field(default_factory=set)
    wrong: dict[str, int] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    listed: dict[str, int] = field(default_factory=dict)
    rate: float | None = None
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_sent(self, path: str, size: int, timeout_s: float = 30.0) -> None:
        """Until `size` bytes of `path` have been sent. Raises TimeoutError."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.sent.get(path, 0) >= size, timeout_s):
                raise TimeoutError(f"{self.sent}")

    def ranges(self, path: str) -> list[str]:
        """The Range headers of the requests for `path`, "" for those without."""
        return [headers.get("range", "") for method, asked, headers in self.requests if asked == path and method == "GET"]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _App:
    def __init__(self, hub: LocalHub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        route = request.url.path
        response = self._listing(request, route)
        if response is None:
            path = self._path(request, route)
            if path is None:
                response = JSONResponse({"error": "not here"}, 404)
            else:
                with self._hub.changed:
                    self._hub.requests.append((request.method, path, dict(request.headers)))
                    self._hub.changed.notify_all()
                response = self._refusal(request, path)
                if response is None and "/resolve/" in route and path.endswith(".safetensors"):
                    # As the real hub does: large files lie elsewhere.
                    linked = {"x-linked-size": str(len(self._hub.files[path])), "x-linked-etag": sha256(self._hub.files[path])}
                    response = Response(None, 302, {"location": f"/cdn/{quote(path)}", "x-repo-commit": COMMIT} | linked)
                if response is None:
                    await self._file(request, path, send)
                    return
        await response(scope, receive, send)

    def _listing(self, request: Request, route: str) -> Response | None:
        hub = self._hub
        huggingface, modelscope = f"/api/models/{MODEL}", f"/api/v1/models/{MODEL}/repo/files"
        if route not in (huggingface, f"{huggingface}/revision/main", modelscope) and not route.startswith((huggingface + "/",)):
            return None
        refusal = self._refusal(request, "listing")
        if refusal is not None:
            return refusal
        with hub.changed:
            hub.requests.append((request.method, "listing", dict(request.headers)))
        if route == modelscope:
            if request.query_params.get("Revision") not in ("master", COMMIT):
                return JSONResponse({"Code": 10010205004, "Message": "revision not found", "Success": False}, 404)
            files = [
                {"Path": path, "Name": path.split("/")[-1], "Size": self._size(path), "Sha256": sha256(content), "Type": "blob"}
                for path, content in hub.files.items()
            ]
            return JSONResponse({"Code": 200, "Success": True, "Data": {"Files": files}})
        if "/tree/" in route:
            return JSONResponse([self._entry(path, content) for path, content in hub.files.items()])
        if "/revision/" in route and not route.endswith(("/main", COMMIT)):
            return JSONResponse({"error": "Invalid rev id"}, 404, {"X-Error-Code": "RevisionNotFound"})
        return JSONResponse({"id": MODEL, "sha": COMMIT, "siblings": [{"rfilename": path} for path in hub.files]})

    def _entry(self, path: str, content: bytes) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": path, "size": self._size(path), "oid": hashlib.sha1(content).hexdigest()}
        if path.endswith(".safetensors"):
            entry["lfs"] = {"oid": sha256(content), "size": self._size(path), "pointerSize": 130}
        return entry

    def _size(self, path: str) -> int:
        return self._hub.listed.get(path, len(self._hub.files[path]))

    def _path(self, request: Request, route: str) -> str | None:
        if route == f"/api/v1/models/{MODEL}/repo":
            path = request.query_params.get("FilePath", "")
        elif route.startswith("/cdn/"):
            path = route.removeprefix("/cdn/")
        else:
            head, _, path = route.partition(f"/{MODEL}/resolve/")
            path = path.partition("/")[2]
            if head:
                return None
        path = unquote(path)
        return path if path in self._hub.files else None

    def _refusal(self, request: Request, what: str) -> Response | None:
        hub = self._hub
        if what in hub.status:
            return JSONResponse({"error": "refused", "Message": "refused", "Code": hub.status[what]}, hub.status[what])
        if hub.token is not None:
            given = request.headers.get("authorization", "") + request.cookies.get("m_session_id", "")
            if hub.token not in given:
                return JSONResponse({"error": "unauthorized", "Message": "unauthorized"}, 401)
        return None

    async def _file(self, request: Request, path: str, send: Send) -> None:
        hub, content = self._hub, self._hub.files[path]
        etag = sha256(content) if path.endswith(".safetensors") else hashlib.sha1(content).hexdigest()
        if hub.wrong.get(path, 0) and request.method == "GET":
            hub.wrong[path] -= 1
            content = bytes(len(content))
        if path in hub.short:
            content = content[: len(content) // 2]
        asked = request.headers.get("range", "")
        start = int(asked.removeprefix("bytes=").split("-")[0]) if asked.startswith("bytes=") else 0
        end = int(asked.split("-")[1]) + 1 if asked.startswith("bytes=") and asked.split("-")[1] else len(content)
        part = content[start:end]
        headers = {
            "content-length": str(len(part)),
            "etag": f'"{etag}"',
            "x-repo-commit": COMMIT,
            "accept-ranges": "bytes",
            "content-type": "application/octet-stream",
        }
        if asked:
            headers["content-range"] = f"bytes {start}-{end - 1}/{len(content)}"
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 206 if asked else 200, "headers": raw})
        if request.method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        cut = None
        if hub.breaks.get(path, 0):
            hub.breaks[path] -= 1
            cut = max(1, len(part) // 2)
        for at in range(0, len(part), _PIECE):
            if cut is not None and at >= cut:
                return  # the response stays unfinished, and uvicorn closes the socket
            piece = part[at : at + _PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            with hub.changed:
                hub.sent[path] = hub.sent.get(path, 0) + len(piece)
                hub.changed.notify_all()
            if hub.rate:
                await asyncio.sleep(len(piece) / hub.rate)
        if cut is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def running(**settings: Any) -> Iterator[LocalHub]:
    """The hub on a thread of its own and a free port. settings: fields of `LocalHub`."""
    hub = LocalHub(**settings)
    bound = socket.create_server(("127.0.0.1", 0))
    hub.address = f"http://127.0.0.1:{bound.getsockname()[1]}"
    config = uvicorn.Config(_App(hub), log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    server = _Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="local-hub", daemon=True)
    thread.start()
    try:
        if not server.ready.wait(10):
            raise RuntimeError("the local hub did not start")
        yield hub
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        bound.close()
