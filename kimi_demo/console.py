"""What commands print while something long goes on: phases, told once where they only say a name, and redrawn where they count."""

import json
import sys
import time
from typing import Any, TextIO

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import Texts

_LINE_S = 10.0
"""How often a count is told where no line can be redrawn: a file, a log of CI."""

_WIDTH = 120


class PhaseConsole:
    """Sentences go to stderr, so that stdout stays for results. as_json: one JSON object a line on stdout instead."""

    def __init__(self, texts: Texts, *, as_json: bool = False, err: TextIO | None = None) -> None:
        self._texts = texts
        self._json = as_json
        self._err = err or sys.stderr
        self._live = self._err.isatty()
        self._name = ""
        self._drawn = False
        self._told_at = float("-inf")
        self._began = time.monotonic()

    def event(self, event: Event) -> None:
        if not isinstance(event, Phase):
            return
        if self._json:
            self.record(event="phase", phase=event.name, done=event.done, total=event.total, params=event.params)
            return
        line = self._texts.say(f"phase.{event.name}", **event.params)
        counted = event.done is not None and event.total is not None
        if counted and not event.params:
            line += f" {event.done}/{event.total}"
        new, self._name = event.name != self._name, event.name
        if self._live and counted:
            if new:
                self._end_line()
            print("\r" + line[:_WIDTH].ljust(_WIDTH), end="", file=self._err, flush=True)
            self._drawn = True
        elif new or time.monotonic() - self._told_at >= _LINE_S:
            self._told_at = time.monotonic()
            self._end_line()
            print(f"{time.monotonic() - self._began:7.1f} s  {line}", file=self._err, flush=True)

    def say(self, key: str, /, **params: object) -> None:
        """A sentence; nothing where JSON is printed."""
        self.plain(self._texts.say(key, **params))

    def plain(self, text: str) -> None:
        """Something that is no sentence of ours; nothing where JSON is printed."""
        if not self._json:
            self._end_line()
            print(text, file=self._err, flush=True)

    def failure(self, failure: Failure) -> None:
        sentence = self._texts.sentence(failure)
        if self._json:
            self.record(event="failed", code=failure.code, params=failure.params, message=sentence)
        else:
            self._end_line()
            print(sentence, file=self._err, flush=True)

    def result(self, text: str, /, **record: Any) -> None:
        """What the command was asked for: `text` on stdout, or `record` where JSON is printed."""
        if self._json:
            self.record(**record)
        else:
            self._end_line()
            print(text, flush=True)

    def record(self, **fields: Any) -> None:
        print(json.dumps({name: value for name, value in fields.items() if value not in (None, {})}, ensure_ascii=False), flush=True)

    def _end_line(self) -> None:
        if self._drawn:
            print(file=self._err, flush=True)
            self._drawn = False
