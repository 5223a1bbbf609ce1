"""Tokens as a tokenizer names them → text that people can read. Pure."""

from collections.abc import Iterable
from functools import cache


def pieces(tokens: Iterable[str]) -> list[tuple[str, int]]:
    """(text, how many tokens it is) for each token, in order; joined, the texts are the tokens' text.

    Byte-level vocabularies (GPT-2's, and Kimi's tiktoken as transformers names it) write each byte as a letter of its own. A character
    cut into several tokens is one piece. Bytes that never become a character are shown as U+FFFD.
    """
    found: list[tuple[str, int]] = []
    held, count = b"", 0
    for token in tokens:
        raw = _bytes(token)
        if raw is None:
            if held:
                found.append((held.decode("utf-8", "replace"), count))
                held, count = b"", 0
            found.append((token.replace("\u2581", " "), 1))
            continue
        held, count = held + raw, count + 1
        try:
            found.append((held.decode(), count))
            held, count = b"", 0
        except UnicodeDecodeError as error:
            # Unfinished at its end, it may still become a character; broken inside, or longer than one, it cannot.
            if error.reason != "unexpected end of data":
                found.append((held.decode("utf-8", "replace"), count))
                held, count = b"", 0
    if held:
        found.append((held.decode("utf-8", "replace"), count))
    return found


def _bytes(token: str) -> bytes | None:
    """The bytes that a byte-level token stands for; None where it is none."""
    table = _alphabet()
    try:
        return bytes(table[letter] for letter in token)
    except KeyError:
        return None


@cache
def _alphabet() -> dict[str, int]:
    """GPT-2's table: printable bytes are themselves, the others the letters from U+0100 on (openai/gpt-2 src/encoder.py)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + position): byte for position, byte in enumerate(others)}
