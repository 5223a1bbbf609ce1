"""Splits a stream of text at the first `</think>`, for servers that hand out thought and answer in one piece."""

from enum import Enum, auto

from kimi_demo.dialect.reply import THOUGHT_END

THOUGHT_START = "<think>"


class _At(Enum):
    START = auto()
    THOUGHT = auto()
    GAP = auto()
    ANSWER = auto()


class ThoughtStream:
    """Takes text in pieces and gives back (thought, answer) pieces, the same as `dialect.reply.split_thought` on the whole.

    opened: the prompt ended in `<think>`, so the text begins inside the thought. Otherwise it does only where it starts with `<think>`.
    A piece is held back only while it may be part of a mark (at most 7 characters), so nothing that can be shown waits.
    """

    __slots__ = ("_at", "_held", "_opened")

    def __init__(self, *, opened: bool) -> None:
        self._opened = opened
        self._at = _At.START
        self._held = ""

    @property
    def in_thought(self) -> bool:
        """Whether text that has come so far was thought, and no `</think>` has ended it."""
        return self._at is _At.THOUGHT or (self._at is _At.START and self._opened)

    @property
    def closed(self) -> bool:
        """Whether `</think>` has come."""
        return self._at is _At.GAP or (self._at is _At.ANSWER and self._opened)

    def feed(self, text: str) -> tuple[str, str]:
        if self._at is _At.ANSWER:
            return "", text
        text, self._held = self._held + text, ""
        if self._at is _At.START:
            bare = text.lstrip()
            if bare.startswith(THOUGHT_START):
                text, self._at, self._opened = bare[len(THOUGHT_START) :], _At.THOUGHT, True
            elif THOUGHT_START.startswith(bare):
                self._held = text
                return "", ""
            else:
                self._at = _At.THOUGHT if self._opened else _At.ANSWER
                if self._at is _At.ANSWER:
                    return "", text
        thought = ""
        if self._at is _At.THOUGHT:
            thought, mark, text = text.partition(THOUGHT_END)
            if not mark:
                keep = _overlap(thought)
                if keep:
                    thought, self._held = thought[:-keep], thought[-keep:]
                return thought, ""
            self._at = _At.GAP
        # The newlines after the mark are the template's, not the answer's.
        text = text.lstrip("\n")
        if text:
            self._at = _At.ANSWER
        return thought, text

    def flush(self) -> tuple[str, str]:
        """What was held back; the text has ended."""
        held, self._held = self._held, ""
        return (held, "") if self.in_thought else ("", held)


def _overlap(text: str) -> int:
    """How many characters at the end of `text` may be the beginning of `</think>`."""
    for length in range(min(len(text), len(THOUGHT_END) - 1), 0, -1):
        if text.endswith(THOUGHT_END[:length]):
            return length
    return 0
