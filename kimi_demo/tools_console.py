"""What `tools` prints: the conversation as it goes, on a terminal; sentences and phases on stderr; with --json one object on stdout."""

import json
import sys
from typing import Any

from kimi_demo.dialect.events import (
    AnswerDelta,
    Event,
    Phase,
    RoundStarted,
    ThoughtDelta,
    ToolCallDelta,
    ToolResult,
)
from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.texts import Texts

_ESCAPES = dict.fromkeys((*range(0x00, 0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)), "\ufffd")
"""What a terminal would obey instead of showing; model and tools may write anything. Tab and line break stay."""


class ToolsConsole:
    """as_json: nothing but the object goes to stdout; what happens is then told on stderr, and only where that is a terminal."""

    def __init__(self, texts: Texts, *, as_json: bool) -> None:
        self._texts = texts
        self._as_json = as_json
        self._stream = sys.stderr if as_json else sys.stdout
        self._told = not as_json or sys.stderr.isatty()
        self._dim = ("\x1b[2m", "\x1b[0m") if self._stream.isatty() else ("", "")
        self._writing = ""
        self._phase = ""

    def event(self, event: Event) -> None:
        """Prints an event of the conversation as it comes."""
        match event:
            case Phase():
                self._end()
                words = self._texts.say(f"phase.{event.name}", **event.params)
                if words != self._phase:  # one that counts comes again with each step
                    print(words, file=sys.stderr, flush=True)
                self._phase = words
            case RoundStarted(index=index):
                self._phase = ""
                self._line(self._texts.say("tools_command.round", number=index + 1))
            case ThoughtDelta(text=text):
                self._write("thought", text, dim=True)
            case AnswerDelta(text=text):
                self._write("answer", text)
            case ToolCallDelta(index=index, name=name, arguments=arguments):
                self._write(f"call {index}", f"→ {name} {arguments}" if name else arguments)
            case ToolResult(name=name, result=result, error=error):
                words = "tools_command.result" if error is None else "tools_command.error"
                self._line(self._texts.say(words, name=name, text=result if error is None else error))
            case _:
                pass

    def json(self, found: dict[str, Any]) -> None:
        self._end()
        # Half a surrogate pair stays as its escape: it can be written in JSON, and not in UTF-8.
        text = json.dumps(found, ensure_ascii=False, indent=2)
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.flush()

    def failure(self, failure: Failure) -> None:
        self._end()
        print(self._texts.sentence(failure), file=sys.stderr, flush=True)

    def line(self, text: str) -> None:
        print(_shown(text), flush=True)

    def end(self) -> None:
        self._end()

    def _write(self, what: str, text: str, *, dim: bool = False) -> None:
        if not self._told or not text:
            return
        if what != self._writing:
            self._end()
            self._writing = what
        on, off = self._dim if dim else ("", "")
        print(f"{on}{_shown(text)}{off}", end="", file=self._stream, flush=True)

    def _line(self, text: str) -> None:
        self._end()
        if self._told:
            print(_shown(text), file=self._stream, flush=True)

    def _end(self) -> None:
        if self._writing:
            print(file=self._stream, flush=True)
            self._writing = ""


def _shown(text: str) -> str:
    return text.translate(_ESCAPES).encode("utf-8", "replace").decode("utf-8")
