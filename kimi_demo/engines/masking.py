"""Secrets in lines that people will see or pass on, made unreadable."""

import os
import re
from collections.abc import Iterable, Mapping

HIDDEN = "•••"

_SECRET_NAME = re.compile(r"(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST = 8
"""A shorter value would blank out ordinary words ("true", "none")."""

_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(hf_)[A-Za-z0-9]{12,}",  # Hugging Face
        r"\b(ms-)[0-9a-f]{8}-[0-9a-f-]{20,}",  # ModelScope
        r"\b(sk-)[A-Za-z0-9_-]{12,}",  # OpenAI, Moonshot
        r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}",
        r"(?i)(authorization['\"]?\s*[:=]\s*['\"]?basic\s+)[A-Za-z0-9+/=]{8,}",
        r"(?i)((?:api[_-]?key|token|password|secret)['\"]?\s*[:=]\s*\[?['\"])[^'\"]{4,}",
        r"(\w+://[^/\s:@]+:)[^/\s@]+(?=@)",  # user:password@ in an address
    )
)


class Mask:
    """Hides known values, and what has the shape of a key. Made once; `hide` is called for every line."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        known = {secret for secret in secrets if secret and len(secret) >= _SHORTEST}
        # The longest first: one may hold another.
        ordered = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def hide(self, line: str) -> str:
        if self._known is not None:
            line = self._known.sub(HIDDEN, line)
        for pattern in _PATTERNS:
            line = pattern.sub(lambda found: found[1] + HIDDEN, line)
        return line


def secrets_in(environment: Mapping[str, str] | None = None) -> list[str]:
    """The values of variables that are named like secrets (HF_TOKEN, AWS_SECRET_ACCESS_KEY, …)."""
    variables = os.environ if environment is None else environment
    return [value for name, value in variables.items() if value and _SECRET_NAME.search(name.removesuffix("_ID"))]
