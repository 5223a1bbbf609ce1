"""The batch command on real vLLM, killed in the middle and gone on with."""

import signal
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from kimi_demo.batches.results import Result, read_results
from tests.programs import Program, running

ROWS = 72
"""More than twice what the engine takes at once, so that a kill after the first ones always meets others in the middle."""


def command(folder: Path, *more: str) -> list[str]:
    flags = ["--data", str(folder / "data"), "--engine", "offline", "--max-model-len", "1024", "--max-tokens", "12", "--seed", "3"]
    return ["-m", "kimi_demo", "batch", "in.txt", "-o", "out.jsonl", *flags, *more]


@pytest.fixture
def folder(tmp_path: Path, standin_model: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rehearsal").symlink_to(standin_model.parent)
    (tmp_path / "in.txt").write_text("".join(f"Say the number {number}.\n" for number in range(ROWS)))
    return tmp_path


def results(folder: Path) -> list[Result]:
    path = folder / "out.jsonl"
    return list(read_results(path)) if path.exists() else []


def kill_after(folder: Path, program: Program, rows: int) -> list[Result]:
    """Kills the command and nothing else once `rows` more results are there; returns what is there when its engine is gone too."""
    wanted = len(results(folder)) + rows
    deadline = time.monotonic() + 600
    while len(results(folder)) < wanted:
        assert program.process.poll() is None and time.monotonic() < deadline, "".join(program.printed)
        time.sleep(0.02)
    engine = psutil.Process(program.process.pid).children(recursive=True)
    assert engine
    program.signal(signal.SIGKILL)
    program.process.wait(10)
    _, left = psutil.wait_procs(engine, timeout=30)
    assert not left, "nothing of the engine outlives the command"
    return results(folder)


def check_complete(folder: Path) -> None:
    found = results(folder)
    assert Counter(result.index for result in found) == Counter(range(ROWS))
    assert len({result.run for result in found}) == 1 and all(result.error is None for result in found)
    for result in found:
        assert result.prompt == f"Say the number {result.index}." and result.completion_tokens > 0
        assert result.rendered_prompt is not None and result.prompt in result.rendered_prompt
        assert result.engine == "offline" and result.reasoning is not None


def test_a_real_batch_that_is_killed_goes_on_where_it_stopped(folder: Path) -> None:
    with running(*command(folder), cwd=folder) as program:
        before = kill_after(folder, program, 10)
    assert 10 <= len(before) < ROWS
    with (folder / "out.jsonl").open("ab") as file:
        file.write(b'{"index": 71, "li')
    with running(*command(folder, "--resume", "--format", "csv"), cwd=folder) as program:
        code, printed = program.ended(600)
    assert code == 0 and f"resumed {len(before)} of {ROWS}" in printed, printed
    assert results(folder)[: len(before)] == before
    check_complete(folder)
    assert (folder / "out.csv").read_text(encoding="utf-8").count("Say the number") == ROWS


@pytest.mark.soak
def test_a_real_batch_survives_a_kill_late_one_early_and_a_ctrl_c(folder: Path) -> None:
    with running(*command(folder), cwd=folder) as program:
        kill_after(folder, program, ROWS - 30)
    with running(*command(folder, "--resume"), cwd=folder) as program:
        kill_after(folder, program, 1)
    with running(*command(folder, "--resume"), cwd=folder) as program:
        program.wait_for("ready", 600)
        program.signal(signal.SIGINT)
        code, printed = program.ended(60)
        assert code == 130 or len(results(folder)) == ROWS, printed
    with running(*command(folder, "--resume"), cwd=folder) as program:
        code, printed = program.ended(600)
    assert code == 0, printed
    check_complete(folder)


@pytest.mark.soak
def test_a_batch_over_three_tensor_parallel_processes(folder: Path) -> None:
    (folder / "in.txt").write_text("".join(f"Say the number {number}.\n" for number in range(24)))
    with running(*command(folder, "--tensor-parallel-size", "3"), cwd=folder) as program:
        program.wait_for("ready", 1200)
        workers = [child.name() for child in psutil.Process(program.process.pid).children(recursive=True)]
        code, printed = program.ended(1200)
    assert code == 0 and "24 of 24 rows done, 0 failed" in printed, printed
    assert sum("Worker" in name for name in workers) == 3, workers
    assert Counter(result.index for result in results(folder)) == Counter(range(24))
