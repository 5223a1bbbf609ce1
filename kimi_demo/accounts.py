"""People who may sign in: a name, a role and a hashed password (scrypt, RFC 7914) each, one a line: NAME:ROLE:HASH.

`python -m kimi_demo password NAME` makes such a line. What is written here is all that is kept of a password.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kimi_demo.dialect.failure import Failure

Role = Literal["viewer", "operator"]
ROLES: tuple[Role, ...] = ("viewer", "operator")

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_HASH = re.compile(r"scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+)")
_LOG_N, _R, _P = 14, 8, 5
"""As OWASP has it for scrypt: 16 MiB of memory and about 0.2 s for each attempt."""
_MOST_LOG_N, _MOST_R, _MOST_P = 18, 16, 16
MOST_PASSWORD_CHARS = 1024


@dataclass(frozen=True)
class Account:
    name: str
    role: Role
    hash: str

    @property
    def mark(self) -> str:
        """Changes with the password and the role: a session of before is then over."""
        return hashlib.sha256(f"{self.name}:{self.role}:{self.hash}".encode()).hexdigest()[:16]


class Accounts:
    def __init__(self, accounts: Iterable[Account]) -> None:
        self._by_name = {account.name: account for account in accounts}
        self._nobody = hashed("")  # so that an unknown name takes as long as a wrong password

    def named(self, name: str) -> Account | None:
        return self._by_name.get(name)

    def of_password(self, name: str, password: str) -> Account | None:
        """Whose name and password these are. Blocking, a fifth of a second."""
        account = self._by_name.get(name)
        right = is_password(password, account.hash if account is not None else self._nobody)
        return account if right and account is not None else None


def read_accounts(given: str) -> Accounts:
    """given: a file, or the lines themselves. Raises Failure: accounts.unreadable (path, error), accounts.line (line), accounts.none."""
    lines = given.splitlines() if ":" in given and "$" in given else _lines_of(Path(given))
    found: dict[str, Account] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, rest = line.strip().partition(":")
        role, _, hash = rest.partition(":")
        known = next((each for each in ROLES if each == role), None)
        if not _NAME.fullmatch(name) or known is None or name in found or _parameters(hash) is None:
            raise Failure("accounts.line", line=number)
        found[name] = Account(name, known, hash)
    if not found:
        raise Failure("accounts.none")
    return Accounts(found.values())


def hashed(password: str) -> str:
    salt = secrets.token_bytes(16)
    made = _scrypt(password, salt, _LOG_N, _R, _P)
    return f"scrypt${_LOG_N}${_R}${_P}${base64.b64encode(salt).decode()}${base64.b64encode(made).decode()}"


def is_password(password: str, hash: str) -> bool:
    found = _parameters(hash)
    if found is None:
        return False
    log_n, r, p, salt, expected = found
    return hmac.compare_digest(_scrypt(password, salt, log_n, r, p), expected)


def _scrypt(password: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    n = 2**log_n
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r + 2**20, dklen=32)


def _parameters(hash: str) -> tuple[int, int, int, bytes, bytes] | None:
    """(log2 of N, r, p, salt, the hash); None for what is none, or would take all the memory."""
    found = _HASH.fullmatch(hash)
    if found is None:
        return None
    log_n, r, p = int(found[1]), int(found[2]), int(found[3])
    if not (10 <= log_n <= _MOST_LOG_N and 1 <= r <= _MOST_R and 1 <= p <= _MOST_P):
        return None
    try:
        salt, expected = (base64.b64decode(found[each], validate=True) for each in (4, 5))
    except ValueError:
        return None
    return (log_n, r, p, salt, expected) if len(salt) >= 8 and len(expected) == 32 else None


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure("accounts.unreadable", path=path, error=getattr(error, "strerror", None) or "not UTF-8 text") from error
