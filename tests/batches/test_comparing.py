"""Two batches side by side."""

from pathlib import Path

import pytest

from kimi_demo.batches.comparing import Places, compare, pairs, similarity, summary
from kimi_demo.batches.results import Result


def row(index: int, answer: str, reasoning: str | None = None, tokens: int = 1) -> Result:
    return Result(index, index + 1, "q", answer=answer, reasoning=reasoning, completion_tokens=tokens)


@pytest.mark.parametrize(
    ("one", "other", "agreement"),
    [
        ("Paris.", "paris", "same"),
        ("**Paris**, of course", "Paris  of course!", "same"),
        ("答案是３。", "答案是3", "same"),
        ("The answer is 5", "The answer is -5", "alike"),
        ("3.5", "35", "different"),
        ("北京是中国的首都。", "中国的首都是北京。", "alike"),
        ("Paris", "Something else entirely", "different"),
        ("", "Paris", "incomparable"),
    ],
)
def test_agreement(one: str, other: str, agreement: str) -> None:
    found = compare(row(0, one), row(0, other))
    assert compare(row(0, other), row(0, one)).agreement == found.agreement
    assert found.agreement == agreement


def test_lengths_are_the_seconds_less_the_firsts() -> None:
    found = compare(row(3, "ab", "long thought", 20), row(3, "abcd", None, 5))
    assert (found.index, found.more_thought, found.more_answer, found.more_tokens) == (3, -12, 2, -15)
    assert compare(row(3, "a"), None).agreement == "incomparable"
    for wrong in ((None, None), (row(1, "a"), row(2, "a"))):
        with pytest.raises(ValueError):
            compare(*wrong)


def test_similarity_is_between_nothing_and_all() -> None:
    assert similarity("abc", "abc") == 1.0 and similarity("abc", "xyz") == 0.0 and similarity("a", "b") == 0.0
    assert 0.4 < similarity("night", "nacht night") < 0.8


def test_files_are_paired_by_row_whatever_order_they_finished_in_and_while_they_grow(tmp_path: Path) -> None:
    one, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    one.write_bytes(b"".join(row(index, f"answer {index}", "t", 4).to_line() for index in (2, 0, 1)))
    other.write_bytes(row(1, "answer 1", None, 2).to_line() + row(0, "Something else").to_line()[:-5])
    first, second = Places(one), Places(other)
    assert [(pair.index, pair.agreement) for pair in pairs(first, second)] == [(0, "incomparable"), (1, "same"), (2, "incomparable")]
    other.write_bytes(row(1, "answer 1", None, 2).to_line() + row(0, "Something else").to_line())
    second.update()
    found = summary(pairs(first, second))
    assert (found.rows, found.same, found.alike, found.different, found.incomparable) == (3, 1, 0, 1, 1)
    assert found.mean_tokens == (4.0, 1.5) and found.mean_thought == (1.0, 0.0)
    assert second.get(7) is None and summary([]).mean_similarity == 0.0
