"""Where the page's own vLLM server is: a file in the data folder, so that commands beside the page use it instead of starting another."""

import contextlib
import os
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

NAME = "chat-server.json"


class NotedServer(BaseModel):
    """pid: of the application that started the server. base_url: "" while it is still starting. command: the server's command line; it
    never holds the key."""

    model_config = ConfigDict(frozen=True)

    pid: int
    base_url: str = ""
    api_key: str = ""
    command: tuple[str, ...] = ()


class ServerNote:
    """The file in `data`; only its user may read it, since the key is in it. Written by the page, read by commands.

    A page that is killed leaves it behind. That harms nothing: its server ends with it, and nothing answers at the address.
    """

    def __init__(self, data: Path) -> None:
        self._path = data / NAME

    def write(self, server: NotedServer) -> None:
        """Raises OSError."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._path.with_suffix(f".{os.getpid()}.part")
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(server.model_dump_json())
        part.replace(self._path)

    def read(self) -> NotedServer | None:
        """None where there is none, or nothing that can be read."""
        try:
            return NotedServer.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None

    def is_starting(self) -> bool:
        """Whether the page that wrote the note lives, and its server is not there yet."""
        noted = self.read()
        if noted is None or noted.base_url:
            return False
        try:
            # A process with this number that is younger than the note is another one.
            return bool(psutil.Process(noted.pid).create_time() <= self._path.stat().st_mtime)
        except (psutil.Error, OSError):
            return False

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
