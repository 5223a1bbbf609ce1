"""Values that a browser keeps for us and must not be able to make itself: signed with a key that stays in the data folder."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

KEY_FILE = "cookies.key"
_KEY_BYTES = 32
_SIGNATURE_CHARS = 32


def kept_key(data: Path) -> bytes:
    """The key of this data folder, made when it is first asked for; only its owner may read the file. Raises OSError."""
    path = data / KEY_FILE
    if path.is_file() and len(key := path.read_bytes()) == _KEY_BYTES:
        return key
    data.mkdir(parents=True, exist_ok=True)
    key = secrets.token_bytes(_KEY_BYTES)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
    return key


def signed(key: bytes, purpose: str, text: str) -> str:
    """`text` with its signature. purpose: a value that was signed for another is not valid."""
    return f"{text}.{_signature(key, purpose, text)}"


def unsigned(key: bytes, purpose: str, value: str) -> str | None:
    """What was signed; None for a value that we did not sign for this purpose."""
    text, _, given = value.rpartition(".")
    return text if hmac.compare_digest(given.encode(), _signature(key, purpose, text).encode()) else None


def _signature(key: bytes, purpose: str, text: str) -> str:
    return hmac.new(key, f"kimi_demo {purpose}\0{text}".encode(), hashlib.sha256).hexdigest()[:_SIGNATURE_CHARS]
