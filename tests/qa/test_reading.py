"""Suites out of files: what is right is read, what is wrong is named with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.qa.case import Overrides, planned
from kimi_demo.qa.reading import MOST_BYTES, SHIPPED, find_suite, read_suite, shipped

HEAD = "name: mine\ntitle: Mine\ncases:\n"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_suites_are_right(name: str) -> None:
    suite = shipped(name)
    plan = planned(suite)
    assert len({each.id for each in plan}) == len(plan) >= 5
    assert suite.name == name and isinstance(suite.title, dict) and set(suite.title) == {"en", "zh"}
    for each in plan:
        assert each.case.title and "{{" not in each.case.model_dump_json()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("# only a remark\n", 1, "empty"),
        ("[1, 2]", 1, "valid dictionary"),
        ("name: x\ntitle: t\ncases: []", 3, "cases"),
        ("name: x\ntitle: t", 1, "cases: Field required"),
        (HEAD + "  - id: a\n    ask: hi\n    checks: {answer: {larger: [9.11, 9.9]}}\n", 6, "the larger of the two numbers stands first"),
        (HEAD + "  - id: a\n    ask: hi\n    checks: {answer: {larger: [nine, 9.9]}}\n", 6, "needs two numbers"),
        (HEAD + "  - {id: a, ask: hi\n", 5, "expected"),
        (HEAD + "  - id: a\n    ask: hi\n   bad: x\n", 6, "expected"),
        (HEAD + "\tid: a", 4, "'\\t'"),
        (HEAD + "  - id: a\n    ask: hi\n    check: {}\n", 6, "cases.0.check: Extra inputs"),
        (HEAD + "  - id: a\n    ask: hi\n    checks:\n      thougt: present\n", 7, "thougt"),
        (HEAD + "  - id: a\n    ask: hi\n    checks:\n      thought: maybe\n", 7, "cases.0.checks.thought"),
        (HEAD + "  - id: a\n    ask: hi\n    checks:\n      answer:\n        matches: '('\n", 8, "no regular expression"),
        (HEAD + "  - id: a\n    ask: hi\n    checks:\n      answer: {json_schema: {type: 7}}\n", 7, "no JSON Schema"),
        (HEAD + "  - id: a\n    ask: hi\n    parameters: {temperature: 3}\n", 6, "temperature"),
        (HEAD + "  - id: a\n    ask: hi\n    parameters: {preset: nobody}\n", 6, "no preset 'nobody'"),
        (HEAD + "  - id: a\n  - id: b\n    ask: hi\n", 4, "needs exactly one of"),
        (HEAD + "  - id: a\n    ask: hi\n    prompt: ho\n", 4, "needs exactly one of"),
        (HEAD + "  - id: a\n    ask: hi\n    tools: [adds]\n", 4, "no tool 'adds'"),
        (HEAD + "  - id: a\n    ask: hi\n    tools: [{name: a b, parameters: {}}]\n", 6, "pattern"),
        (HEAD + "  - id: a\n    ask: hi\n    checks: {same_tool: true}\n", 4, "repeats"),
        (HEAD + "  - id: a\n    ask: hi\n    checks: {same_structure: true}\n", 4, "stream: both"),
        (HEAD + "  - id: a\n    ask: hi\n    checks: {calls: {count: 1}}\n", 4, "where there are tools"),
        (HEAD + "  - id: a\n    ask: hi\n  - id: a\n    ask: ho\n", 1, "'a' is there twice"),
        (HEAD + "  - id: a\n    ask: hi\n    ask: ho\n", 6, "'ask' is there twice"),
        (HEAD + "  - &x {id: a, ask: hi}\n  - *x\n", 4, "aliases"),
        (HEAD + "  - id: a\n    ask: '{{n}}'\n    each: [{n: 7}]\n", 6, "ask"),
        (HEAD + "  - id: a\n    ask: hi\n    stream: whole\n    mode: raw\n", 4, "mode raw"),
        ("a: " + "[" * 3000, 1, ""),
        ("name: !!python/object:os.system x", 1, "could not determine a constructor"),
        ("name: x\ntitle: \x00", 2, "control character"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(Failure) as caught:
        read_suite(text, "mine.yaml")
    assert caught.value.code == "qa.suite_wrong" and caught.value.params["path"] == "mine.yaml"
    assert said in caught.value.params["problem"], caught.value.params
    assert caught.value.params["line"] == str(line), caught.value.params


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        read_suite(text, "x")
    except Failure as failure:
        assert failure.code == "qa.suite_wrong" and int(failure.params["line"]) >= 1


def test_a_case_for_each_row() -> None:
    suite = read_suite(
        HEAD
        + """
  - id: sums
    ask: "{{a}} plus {{b}}?"
    tools: [add]
    each:
      - {a: 1, b: 2, mark: one}
      - {a: 3, b: 4.5, mark: two}
    checks:
      calls: {arguments: {a: "{{a}}", b: "{{b}}"}}
      answer: {contains: "{{b}}"}
      not_mixed_up: true
""",
        "x",
    )
    first, second = planned(suite)
    assert (first.id, second.id, first.family) == ("sums.1", "sums.2", "sums")
    assert second.case.ask == "3 plus 4.5?" and second.case.checks.calls is not None and second.case.checks.answer is not None
    assert second.case.checks.calls.arguments == ({"a": 3, "b": 4.5},) and second.case.checks.answer.contains == ("4.5",)
    assert (first.mark, first.others) == ("one", ("two",))


def test_parameters_of_case_suite_preset_and_run() -> None:
    suite = read_suite(
        "name: x\ntitle: t\nparameters: {temperature: 0.3, max_tokens: 50}\ncases:\n"
        "  - {id: a, ask: hi}\n  - {id: b, ask: hi, parameters: {preset: tools, max_tokens: 7}}\n",
        "x",
    )
    plain, preset = planned(suite)
    assert (plain.sampling.temperature, plain.sampling.top_p, plain.sampling.max_tokens) == (0.3, 0.95, 50)
    assert (preset.sampling.temperature, preset.sampling.max_tokens) == (0.3, 7)
    other = planned(suite, Overrides(preset="guide_thinking"))[1].sampling
    assert other.temperature == PRESETS["guide_thinking"].sampling.temperature and other.top_k == 20 and other.max_tokens == 7


def test_a_run_in_the_other_mode_expects_the_other_thing() -> None:
    suite = read_suite(HEAD + "  - {id: a, ask: hi, checks: {thought: present}}\n  - {id: r, mode: render, ask: hi}\n", "x")
    chat, render = planned(suite, Overrides(mode="instant", repeats=3))
    assert chat.case.mode == "instant" and chat.case.checks.thought == "absent" and chat.case.repeats == 3
    assert render.case.mode == "render" and render.case.repeats == 1


def test_finding_a_suite(tmp_path: Path) -> None:
    own = tmp_path / "nightly.yaml"
    own.write_text("\ufeff" + HEAD + "  - {id: a, ask: 你好}\n", encoding="utf-8")
    (tmp_path / "smoke.yaml").write_text("broken: [")
    assert find_suite("Blind spots").name == "blind_spots" and find_suite("blind-spots").name == "blind_spots"
    assert find_suite("nightly", tmp_path).cases[0].ask == "你好" and find_suite(str(own)).name == "mine"
    assert find_suite("smoke", tmp_path).name == "smoke"


@pytest.mark.parametrize("kind", ["absent", "folder", "binary", "large", "odd"])
def test_a_file_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    elif kind == "large":
        path.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(Failure) as caught:
        find_suite("a\0b" if kind == "odd" else str(path))
    assert caught.value.code == ("qa.no_suite" if kind == "absent" else "qa.unreadable")
    if kind == "absent":
        assert "smoke" in caught.value.params["known"]
