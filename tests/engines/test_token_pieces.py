"""Tokens as tokenizers name them → text."""

from kimi_demo.engines.token_pieces import _alphabet, pieces

LETTER = {byte: letter for letter, byte in _alphabet().items()}


def named(*parts: bytes) -> list[str]:
    return ["".join(LETTER[byte] for byte in part) for part in parts]


def test_spaces_line_breaks_and_marks_are_themselves() -> None:
    assert pieces(["Hello", "Ġworld", "Ċ", "<|im_end|>"]) == [("Hello", 1), (" world", 1), ("\n", 1), ("<|im_end|>", 1)]


def test_a_character_in_several_tokens_is_one_piece() -> None:
    whole = "🎉".encode()
    assert pieces(named("学".encode(), whole[:2], whole[2:3], whole[3:], b"!")) == [("学", 1), ("🎉", 3), ("!", 1)]


def test_bytes_that_become_no_character_do_not_swallow_what_follows() -> None:
    found = pieces(named(b"\xf0\x9f", b"ok", b"\xf0"))
    assert "".join(text for text, _ in found) == "\ufffdok\ufffd" and sum(count for _, count in found) == 3


def test_other_vocabularies_keep_their_words() -> None:
    assert pieces(["▁Hello", "▁world"]) == [(" Hello", 1), (" world", 1)]
