"""Whose a thing is: an owner's id is 32 characters, and its first says what kind of owner it is.

A hex digit: somebody in local mode, or an operator. `v`: a viewer of a public page, known by their cookie. `w`: a viewer whose request
brought no cookie, and who is another owner with every request.
"""

import re
from typing import Literal

OWNER = re.compile(r"[0-9a-fvw][0-9a-f]{31}")

Kind = Literal["known", "viewer", "passing"]
_MARKS: dict[Kind, str] = {"viewer": "v", "passing": "w"}


def owner_id(digest: str, kind: Kind) -> str:
    """The id made of a digest of at least 32 hex digits."""
    mark = _MARKS.get(kind, "")
    return mark + digest[: 32 - len(mark)]


def is_viewer(owner: str) -> bool:
    """Whether limits and the rules of a public page hold for this owner."""
    return owner.startswith(tuple(_MARKS.values()))


def purse_of(owner: str) -> str:
    """Under which name a viewer's use is counted: those without a cookie are one to the limits, or each request would be a new visitor."""
    return _MARKS["passing"] if owner.startswith(_MARKS["passing"]) else owner
