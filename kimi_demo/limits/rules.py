"""What one thing that a viewer starts may ask for. Pure."""

from dataclasses import dataclass

from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.spent import about


@dataclass(frozen=True)
class Wanted:
    """max_tokens: of one reply; replies: how many of them at most (rounds, rows, repetitions); prompt: the longest, in characters."""

    text: str
    max_tokens: int
    replies: int = 1
    images: int = 0

    @property
    def tokens(self) -> int:
        """What it may cost at most, about: the prompt of a later round is not known yet."""
        return about(self.text) + self.max_tokens * self.replies


@dataclass(frozen=True)
class Rules:
    max_tokens: int
    prompt_chars: int
    images: int
    rows: int
    rounds: int
    repeats: int

    def check(self, wanted: Wanted) -> None:
        """Raises Failure: limits.max_tokens, limits.prompt, limits.images."""
        if wanted.max_tokens > self.max_tokens:
            raise Failure("limits.max_tokens", wanted=f"{wanted.max_tokens:,}", limit=f"{self.max_tokens:,}")
        if len(wanted.text) > self.prompt_chars:
            raise Failure("limits.prompt", characters=f"{len(wanted.text):,}", limit=f"{self.prompt_chars:,}")
        if wanted.images > self.images:
            raise Failure("limits.images", images=wanted.images, limit=self.images)
