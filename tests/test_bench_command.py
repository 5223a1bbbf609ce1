"""`bench` as a person and a program meet it: the shape of what it gives, not how fast anything is."""

import json
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from kimi_demo import bench_command, cli
from scripts.bench.figure import GOALS, measured, not_run
from scripts.bench.stage import Clock
from scripts.bench.streams import Pass
from scripts.bench.visitor import Stream
from tests.programs import ROOT, running

BRIEF = ("presses", "floor", "bytes", "batch")
"""What a busy machine cannot make fail, only slow: many streams at once are left to the soak."""
LIMIT_S = 300


def benched(into: Path, *flags: str) -> tuple[dict[str, Any], str]:
    """(the JSON, what was printed) of a trial run that measured all it should."""
    with running("-m", "kimi_demo", "bench", "--quick", "--json", str(into), *flags, cwd=ROOT, COLUMNS="200") as program:
        code, printed = program.ended(LIMIT_S)
    assert code == 0, printed
    return json.loads(into.read_text(encoding="utf-8")), printed


def check_shape(told: dict[str, Any], printed: str) -> None:
    assert told["quick"] is True and told["machine"]["cpus"] >= 1 and told["machine"]["packages"]["gradio"]
    assert list(told["figures"]) == list(GOALS)
    for key, figure in told["figures"].items():
        assert key in printed
        assert {"value", "unit", "limit", "ok", "raw"} <= set(figure)
        if figure["value"] is None:
            assert figure["not_run"] and figure["ok"] is None
        else:
            assert figure["raw"] and (figure["ok"] is None) == (figure["limit"] is None)


def test_a_trial_run_gives_a_figure_or_a_reason_for_every_key(tmp_path: Path) -> None:
    told, printed = benched(tmp_path / "bench.json", *(f"--only={name}" for name in BRIEF))
    check_shape(told, printed)
    values = {key: figure["value"] for key, figure in told["figures"].items()}
    for key in ("floor_ratio", "bytes_50k", "enter_to_first_ms", "stop_ms", "stop_prefill_ms"):
        assert values[key] is not None and values[key] > 0, key
    assert told["figures"]["batch_ratio"]["not_run"].startswith(("left out with --quick", "this machine has a GPU"))
    assert told["figures"]["start_s"]["not_run"] == "not measured"


@pytest.mark.soak
def test_all_of_it_and_the_page_beside_ours(tmp_path: Path) -> None:
    told, printed = benched(tmp_path / "bench.json")
    check_shape(told, printed)
    missing = {key for key, figure in told["figures"].items() if figure["value"] is None}
    assert missing == {"throughput_vllm", "batch_ratio", "batch_ratio_gpu"}
    for page in ("a bare page", "kimi_demo", "gr.ChatInterface"):
        assert told["peers"][page]["thread_ms_per_token"] > 0 and page in printed
    assert told["peers"]["open-webui"]["not_run"]


def test_interrupted_it_ends_with_130_and_leaves_nothing_running(tmp_path: Path) -> None:
    with running("-m", "kimi_demo", "bench", "--quick", "--only=presses", "--json", str(tmp_path / "b.json"), cwd=ROOT) as program:
        program.wait_for("measuring presses")
        started = psutil.Process(program.process.pid).children(recursive=True)
        program.signal(signal.SIGINT)
        code, printed = program.ended(LIMIT_S)
    assert code == 130 and "Traceback" not in printed, printed
    _, alive = psutil.wait_procs(started, timeout=30)
    assert started and not alive


def test_where_it_cannot_measure_it_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "--json", str(tmp_path / "no" / "such" / "folder.json")]) == 2
    assert "folder.json cannot be written" in capsys.readouterr().err
    monkeypatch.setattr(bench_command, "find_spec", lambda name: None)
    assert cli.main(["bench", "--json", str(tmp_path / "b.json")]) == 2
    assert "missing here: playwright, rich" in capsys.readouterr().err
    monkeypatch.setattr(bench_command, "_ROOT", tmp_path)
    assert cli.main(["bench", "--json", str(tmp_path / "b.json")]) == 2
    assert "source checkout" in capsys.readouterr().err


def test_bytes_per_token_are_those_of_the_messages_inside_the_window() -> None:
    stream = Stream()
    for tokens, size in ((10, 1000), (10, 200), (0, 50), (10, 250), (10, 9000)):
        stream.heard(tokens, size, 1.0)
    assert stream.bytes_per_token(10, 20) == (200 + 50 + 250) / 20
    assert stream.tokens == 40 and stream.bytes == 10_500


def test_times_of_several_streams() -> None:
    found = Pass.of([Stream(tokens=50, first=0.1, last=1.0), Stream(tokens=50, first=0.3, last=2.0)], Clock(1.0, 1.0, 2.0))
    assert found.tokens_per_s == 37.5 and found.tokens == 100
    assert found.quantile(0.95) == 300 and Pass.of([Stream(50, 0, 0.2, 1.0)], Clock(1, 1, 1)).quantile(0.5) == 200


@pytest.mark.parametrize(("key", "value", "ok"), [("throughput_1", 0.98, True), ("throughput_1", 0.9, False), ("floor_ratio", 2.1, False)])
def test_whether_a_goal_is_reached_depends_on_which_side_is_good(key: str, value: float, ok: bool) -> None:
    assert measured(key, value).ok is ok
    assert not_run(key, "why").ok is None
    assert measured("memory_10k_runs_mb", 5.0).ok is None  # only reported
