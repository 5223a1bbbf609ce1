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
