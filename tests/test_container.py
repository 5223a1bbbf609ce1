"""What the container is made from: settings that exist, a user that is not root, a health check that tells ready from starting."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from kimi_demo.settings import Settings
from tests.programs import ROOT, running

STUB = str(ROOT / "tests" / "ui" / "stub_page.py")
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_health_check_tells_ready_from_starting_and_from_nothing(tmp_path: Path) -> None:
    def healthy(port: str) -> bool:
        command = [sys.executable, str(ROOT / "scripts" / "healthy.py")]
        return subprocess.run(command, env={"KIMI_DEMO_PORT": port}, timeout=30).returncode == 0

    assert not healthy("9")
    with running(STUB, "--port", "0", cwd=tmp_path) as program:
        port = program.wait_for(r"http://127\.0\.0\.1:(\d+)/")[1]
        assert not healthy(port)
        program.tell("go")
        program.wait_for("alive")
        while not healthy(port):
            pass
        program.signal(signal.SIGTERM)
        program.wait_for("closing")
        program.tell("close")
        assert program.ended()[0] == 0


def test_it_runs_as_an_ordinary_user_without_build_tools_and_with_its_data_outside() -> None:
    lines = DOCKERFILE.splitlines()
    assert lines.index("USER demo") < next(number for number, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    assert "VOLUME /data" in lines and "healthy.py" in DOCKERFILE
    assert not re.search(r"build-essential|gcc|g\+\+|cmake", DOCKERFILE)
    for copied in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all(list(ROOT.glob(name)) for name in copied.split())


def test_every_setting_that_it_names_is_one() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    named = {*re.findall(r"KIMI_DEMO_([A-Z_]+)=", DOCKERFILE), *(name[10:] for name in compose["services"]["page"]["environment"])}
    assert {name.lower() for name in named} - {"kind"} <= set(Settings.model_fields)
    assert "ports" not in compose["services"]["vllm"] and compose["services"]["page"]["cap_drop"] == ["ALL"]
