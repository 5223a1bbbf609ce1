"""`serve` and `check` together, on real vLLM with the stand-in: one start, one self-test, one Ctrl-C. And what is refused beforehand."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from kimi_demo import cli
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Gpu
from kimi_demo.engines.launch import Launch
from kimi_demo.serve_command import refuse_what_cannot_fit
from tests.engines.living import alive, tree, until
from tests.ports import free_port
from tests.programs import ROOT, running


def test_serve_check_and_ctrl_c(standin_model: Path, tmp_path: Path) -> None:
    (tmp_path / "rehearsal").symlink_to(standin_model.parent)
    port = free_port()
    serve = ("-m", "kimi_demo", "serve", "--data", str(tmp_path), "--server-port", str(port), "--max-model-len", "2048")
    with running(*serve, cwd=ROOT, PYTHONUNBUFFERED="1") as program:
        program.wait_for(rf"^http://127\.0\.0\.1:{port}/v1$", 300)
        printed = "".join(program.printed)
        assert "--reasoning-parser kimi_k2" in printed and "Loading weights" in printed
        assert f"curl http://127.0.0.1:{port}/v1/chat/completions" in printed and "Authorization" not in printed
        assert httpx.get(f"http://127.0.0.1:{port}/v1/models", timeout=30).status_code == 200  # no key was set, so none is asked for
        members = tree(program.process.pid)
        check = [sys.executable, "-m", "kimi_demo", "check", f"http://127.0.0.1:{port}/v1", "--json"]
        ended = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=400)
        found = {one["name"]: one for one in json.loads(ended.stdout)["checks"]}
        assert {name: one["code"] for name, one in found.items() if one["state"] != "passed"} == {}, found
        assert ended.returncode == 0 and found["tool_call"]["facts"]["call"].startswith("add(")
        assert float(found["stop"]["facts"]["seconds"]) < 20
        program.signal(signal.SIGINT)
        code, printed = program.ended(60)
    assert code == 0 and printed.rstrip().endswith("Stopped."), printed
    assert until(lambda: not alive(members), 12)
    assert (tmp_path / "logs" / f"serve-{port}" / "vllm-server.log").stat().st_size


def test_a_port_that_is_taken_is_said_before_anything_is_loaded(
    standin_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["serve", "--model", str(standin_model), "--data", str(tmp_path), "--server-port", str(port)]) == 2
    printed = capsys.readouterr().err
    assert f"Port {port} is in use" in printed and "--server-port" in printed and "Starting" not in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "/no/such/model"), "/no/such/model"),
        (("--vllm-args", "--api-key x"), "--api-key"),
    ],
)
def test_bad_input_ends_with_2(
    arguments: tuple[str, ...], said: str, standin_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = arguments if "--model" in arguments else ("--model", str(standin_model), *arguments)
    assert cli.main(["serve", *named, "--data", str(tmp_path), "--server-port", "0"]) == 2
    assert said in capsys.readouterr().err


def test_what_the_gpus_cannot_hold_is_refused_before_it_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    eight = [Gpu(index, "NVIDIA H100", f"GPU-{index}", 81_559 * 2**20, 81_000 * 2**20) for index in range(8)]
    monkeypatch.setattr("kimi_demo.engines.accelerators.gpus", lambda: eight)
    launch = Launch("moonshotai/Kimi-K2.5", tmp_path, named=True, tensor_parallel_size=8, on_cpu=False)
    with pytest.raises(Failure) as failed:
        refuse_what_cannot_fit(launch)
    assert failed.value.code == "plan.nothing_left"
    refuse_what_cannot_fit(Launch("somebody/Else", tmp_path, on_cpu=False))  # nothing is known of it
    refuse_what_cannot_fit(Launch("moonshotai/Kimi-K2.5", tmp_path, on_cpu=True))
