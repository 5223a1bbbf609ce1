"""A package index on this machine: two tiny wheels, of which one can be held back, and a count of what was fetched."""

import base64
import hashlib
import io
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def wheel(name: str, version: str = "1.0") -> bytes:
    """A pure-Python wheel with one module that holds its version."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return packed.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@dataclass
class Index:
    """url: for PIP_INDEX_URL. fetched: wheels by file name. asked: the held-back wheel was asked for; it is sent once `release` is set."""

    url: str
    held_back: str
    fetched: Counter[str] = field(default_factory=Counter)
    asked: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(names: tuple[str, ...], held_back: str = "") -> Iterator[Index]:
    wheels = {f"{name}-1.0-py3-none-any.whl": wheel(name) for name in names}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, _, name = self.path.strip("/").partition("/")
            if kind == "simple":
                links = [file for file in wheels if file.startswith(f"{name.replace('-', '_')}-")]
                body = "".join(f'<a href="/files/{file}">{file}</a>' for file in links).encode()
                self._send(200 if links else 404, "text/html", body)
                return
            index.fetched[name] += 1
            if held_back and name.startswith(held_back):
                index.asked.set()
                index.release.wait(60)
            self._send(200, "application/octet-stream", wheels[name])

        def _send(self, status: int, kind: str, body: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # the one who asked was killed
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index = Index(f"http://127.0.0.1:{server.server_address[1]}/simple", held_back)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield index
        finally:
            index.release.set()
            server.shutdown()
            thread.join()
