"""Replies kept in a file while an evaluation runs, so that the same command goes on after an interruption."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kimi_demo.engines.rehearsal.evaluation.run import Request
from kimi_demo.engines.rehearsal.evaluation.scoring import ModelCall, Reply


class KeptReplies:
    """A file of JSON lines, one a reply. model: a name that changes with the model's contents; other models' replies are never taken."""

    def __init__(self, path: Path, model: str) -> None:
        """Raises OSError when `path` cannot be read or written. A last line that was cut off is left out and asked for again."""
        self._path = path
        self._model = model
        self._found: dict[str, Reply] = {}
        path.touch()
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                record: dict[str, Any] = json.loads(line)
                calls = tuple(ModelCall(**call) for call in record["reply"].pop("calls"))
                self._found[record["key"]] = Reply(**record["reply"], calls=calls)
            except (ValueError, KeyError, TypeError):
                continue
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def __len__(self) -> int:
        return len(self._found)

    def find(self, request: Request) -> Reply | None:
        return self._found.get(self._key(request))

    def add(self, request: Request, reply: Reply) -> None:
        key = self._key(request)
        self._found[key] = reply
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "reply": asdict(reply)}, ensure_ascii=False) + "\n")

    def _key(self, request: Request) -> str:
        asked = json.dumps([self._model, list(request.messages), list(request.tools), request.thinking], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()
