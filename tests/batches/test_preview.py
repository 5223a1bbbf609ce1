"""What the model will read, with the stand-in's own tokenizer."""

from pathlib import Path

import pytest

from kimi_demo.batches.preview import TokenizerRenderer, preview, too_long
from kimi_demo.batches.reading import open_source
from kimi_demo.batches.rows import Row
from kimi_demo.dialect.failure import Failure


@pytest.fixture(scope="module")
def renderer(standin_model: Path) -> TokenizerRenderer:
    return TokenizerRenderer(str(standin_model), named=False)


def test_rows_are_shown_as_the_template_writes_them(renderer: TokenizerRenderer) -> None:
    thinking, instant, own = preview(
        [Row(0, 1, "什么是大模型？"), Row(1, 2, "hi", thinking=False), Row(2, 3, [{"role": "system", "content": "S"}])],
        renderer,
        thinking=True,
    )
    assert thinking.prompt is not None and "什么是大模型？" in thinking.prompt and thinking.prompt.endswith("<think>")
    assert thinking.tokens is not None and 5 < thinking.tokens < 100
    assert instant.prompt is not None and instant.prompt.endswith("<think></think>") and own.prompt is not None and "S" in own.prompt


def test_rows_that_leave_no_room_are_listed_and_few_are_counted(renderer: TokenizerRenderer, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("short\n" + "stone " * 300 + "\n" + "x" * 500 + "\n" + "fits\n")
    counted: list[str] = []
    count = renderer.count

    class Counting:
        render = renderer.render

        def count(self, prompt: str) -> int:
            counted.append(prompt)
            return count(prompt)

    found = list(too_long(open_source(tmp_path / "in.txt").rows(), Counting(), limit=256, thinking=True))
    exact = renderer.count(renderer.render([{"role": "user", "content": "stone " * 300}], thinking=True))
    assert [(row.line, row.failure.code) for row in found][0] == (2, "batch.prompt_too_long")
    assert found[0].failure.params == {"tokens": str(exact), "limit": "256"} and len(counted) == 2


def test_a_row_that_the_template_refuses_stops_no_other(renderer: TokenizerRenderer) -> None:
    class Refusing:
        count = renderer.count

        def render(self, messages: list[dict[str, object]], *, thinking: bool) -> str:
            if messages[0]["content"] == "bad":
                raise ZeroDivisionError
            return str(messages)

    found = preview([Row(0, 1, "bad"), Row(1, 2, "good")], Refusing(), thinking=True)
    assert [row.tokens is None for row in found] == [True, False]


def test_a_model_without_a_tokenizer_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed:
        TokenizerRenderer(str(tmp_path), named=False)
    assert failed.value.code == "batches.no_tokenizer"
