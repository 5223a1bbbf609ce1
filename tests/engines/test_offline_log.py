"""What vLLM's processes write, line by line."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from kimi_demo.engines.offline_log import LogFollower, message, prepare_log, read_log, root_cause


def test_the_prefix_is_taken_off() -> None:
    assert (
        message("(Worker_TP0 pid=9178) INFO 11-30 16:02:16 [default_loader.py:501] Loading weights took 0.57 s")
        == "Loading weights took 0.57 s"
    )
    assert message("Loading safetensors checkpoint shards: 100%") == "Loading safetensors checkpoint shards: 100%"


def test_words_about_errors_are_no_exception() -> None:
    assert root_cause(["ValueErrors happen", "see ValueError: x", "(A pid=1) INFO 1-1 [a.py:1] No Error: fine"]) is None
    assert root_cause(["  raise KeyError(1)", "KeyError: 1", "RuntimeError: 2"]) == "KeyError: 1"


def test_lines_come_as_they_are_written_and_the_last_one_without_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")
    seen: list[str] = []
    three = threading.Event()

    def on_line(line: str) -> None:
        seen.append(line)
        if len(seen) == 3:
            three.set()

    looks: list[None] = []
    with LogFollower(log, on_line, lambda: looks.append(None)), log.open("a", encoding="utf-8") as file:
        file.write("first\nhalf")
        file.flush()
        file.write(" a line 模型\n\rbar 1/2\rbar")
        file.flush()
        assert three.wait(10), seen
        file.write(" 2/2")
    assert seen == ["first", "half a line 模型", "bar 1/2", "bar 2/2"] and looks


def test_a_process_of_vllms_writes_everything_into_the_log_and_the_application_keeps_its_own_output(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "engine.log"
    configuration = json.loads(prepare_log(log).read_text())
    handler = configuration["handlers"]["engine"]
    assert handler["app_pid"] == os.getpid() and handler["path"] == str(log)
    script = (
        "import logging, os, sys; from kimi_demo.engines.offline_log import EngineLogHandler;"
        "logging.getLogger('a').addHandler(EngineLogHandler(sys.argv[1], int(sys.argv[2]) or os.getpid()));"
        "logging.getLogger('a').error('logged'); os.write(2, b'raw\\n'); print('printed', flush=True)"
    )

    def run(app_pid: int) -> tuple[str, list[str]]:
        log.write_text("")
        done = subprocess.run([sys.executable, "-c", script, str(log), str(app_pid)], capture_output=True, text=True, check=True)
        return done.stdout + done.stderr, read_log(log)

    assert run(os.getpid()) == ("", ["logged", "raw", "printed"])
    output, logged = run(0)
    assert sorted(output.split()) == ["printed", "raw"] and logged == ["logged"]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_log(tmp_path / "none") == []
