"""Which field of the form vLLM's words are about, and a parser that is asked from a page. vLLM itself: test_vllm_parser.py."""

import asyncio
import sys
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines import vllm_parser
from kimi_demo.engines.launch_objection import field_of, needs_parser
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.vllm_parser import VllmParser

_SCRIPTED = """
import json, os, sys
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
for line in sys.stdin:
    arguments = json.loads(line)
    if "--die" in arguments:
        print("ImportError: no module named torch", file=sys.stderr)
        sys.exit(1)
    if "--wait" in arguments:
        import time
        while not os.path.exists(arguments[-1]):
            time.sleep(0.01)
    print(json.dumps("unrecognized arguments: --no" if "--no" in arguments else None), flush=True)
"""


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for each child that was started; the child answers by rule."""
    file = tmp_path / "starts"
    file.touch()
    monkeypatch.setattr(vllm_parser, "_COMMAND", (sys.executable, "-c", _SCRIPTED, str(file)))
    monkeypatch.setattr(vllm_parser, "find_vllm", lambda: True)
    return file


def count(starts: Path) -> int:
    return len(starts.read_text().splitlines())


@pytest.mark.parametrize(
    ("words", "extra", "field"),
    [
        ("unrecognized arguments: --no-such-flag", "--no-such-flag 1", "extra"),
        ("argument --speculative-config/-sc: Value {x cannot be converted", "", "speculative"),
        ("argument --speculative-config/-sc: Value {x cannot be converted", "--seed 1", "speculative"),
        ("argument --speculative-config/-sc: Value {x cannot be converted", "--speculative_conf {x", "extra"),
        ("argument --speculative-config/-sc: Value {x cannot be converted", "-sc {x", "extra"),
        ("argument --max-model-len: invalid value", "--max-model-l many", "extra"),
    ],
)
def test_the_field_that_is_meant(words: str, extra: str, field: str) -> None:
    assert field_of(words, LaunchOptions(extra=extra, speculative="{}")) == field


def test_only_what_is_typed_freely_is_asked_about() -> None:
    assert not needs_parser(LaunchOptions(kv_cache_dtype="fp8", served_model_name="kimi"))
    assert needs_parser(LaunchOptions(extra="--seed 1")) and needs_parser(LaunchOptions(speculative="{}"))


async def test_one_child_answers_everything_and_each_line_is_asked_about_once(starts: Path) -> None:
    parser = VllmParser()
    try:
        first = await asyncio.gather(*(parser.refused(["m", "--no"]) for _ in range(20)), parser.refused(["m"]))
        assert first == ["unrecognized arguments: --no"] * 20 + [None]
        assert parser._child is not None and parser._child.stdin is not None
        parser._child.stdin.close()  # as after a long time without a question
        await parser._child.wait()
        assert await parser.refused(["m", "--no"]) == "unrecognized arguments: --no"
        assert count(starts) == 1  # it was known
        assert await parser.refused(["m", "--other"]) is None
        assert count(starts) == 2
    finally:
        await parser.aclose()


async def test_a_child_that_dies_is_told_of_and_the_next_question_starts_another(starts: Path) -> None:
    parser = VllmParser()
    try:
        for _ in range(2):  # a failure is no answer to keep
            with pytest.raises(Failure) as failed:
                await parser.refused(["--die"])
            assert (failed.value.code, failed.value.params["reason"]) == ("server.parser", "ImportError: no module named torch")
        assert await parser.refused(["m"]) is None and count(starts) == 3
    finally:
        await parser.aclose()


async def test_an_answer_is_kept_though_nobody_waits_for_it_any_more(starts: Path, tmp_path: Path) -> None:
    parser = VllmParser()
    gate = tmp_path / "gate"
    try:
        line = ["--wait", "--no", str(gate)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await parser.refused(line)
        gate.touch()
        assert await parser.refused(line) == "unrecognized arguments: --no" and count(starts) == 1
    finally:
        await parser.aclose()


async def test_closing_ends_the_child_and_what_waits_for_it(starts: Path, tmp_path: Path) -> None:
    parser = VllmParser()
    waiting = asyncio.create_task(parser.refused(["--wait", str(tmp_path / "never")]))
    async with asyncio.timeout(20):
        while not count(starts):  # noqa: ASYNC110  (a file is no event)
            await asyncio.sleep(0.01)
    child = parser._child
    await parser.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert child is not None and child.returncode is not None


async def test_without_vllm_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_parser, "find_vllm", lambda: None)
    parser = VllmParser()
    with pytest.raises(Failure) as failed:
        await parser.refused(["m"])
    assert failed.value.code == "server.no_vllm"
    await parser.aclose()
