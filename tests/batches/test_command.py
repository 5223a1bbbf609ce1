"""`python -m kimi_demo batch` as a person meets it, against a scripted server."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kimi_demo.batches.results import read_results
from tests import scripted_server
from tests.programs import ROOT, running
from tests.scripted_server import Scripted


@pytest.fixture(scope="module")
def shared() -> Iterator[Scripted]:
    with scripted_server.running() as server:
        yield server


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    shared.reset()
    return shared


def command(server: Scripted, *more: str) -> list[str]:
    return ["-m", "kimi_demo", "batch", "in.txt", "-o", "out.jsonl", "--base-url", server.base_url, *more]


def ended(folder: Path, arguments: list[str]) -> tuple[int, str]:
    with running(*arguments, cwd=folder) as program:
        return program.ended()


def indices(folder: Path) -> list[int]:
    return sorted(result.index for result in read_results(folder / "out.jsonl"))


def until_written(file: Path, rows: int, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while file.read_bytes().count(b"\n") < rows:
        assert time.monotonic() < deadline, file.read_text(encoding="utf-8")
        time.sleep(0.05)


def write(folder: Path, count: int, text: str = "prompt {}") -> None:
    (folder / "in.txt").write_text("".join(text.format(number) + "\n" for number in range(count)), encoding="utf-8")


def test_from_a_file_to_results_and_a_table_beside_them(tmp_path: Path, server: Scripted) -> None:
    (tmp_path / "in.csv").write_text("id,问题\n7,什么是大模型？\n8,=1+1\n", encoding="gbk")
    arguments = ["-m", "kimi_demo", "batch", "in.csv", "-o", "out.jsonl", "--base-url", server.base_url, "--format", "csv"]
    arguments += ["--preset", "moonshot_instant", "--max-tokens", "77", "--column", "问题", "--seed", "5"]
    code, printed = ended(tmp_path, arguments)
    assert code == 0, printed
    assert "2 of 2 rows done, 0 failed" in printed
    found = {result.index: result for result in read_results(tmp_path / "out.jsonl")}
    assert found[0].prompt == "什么是大模型？" and found[0].columns == {"id": "7"} and found[0].answer and found[0].reasoning is None
    assert found[1].engine == "server" and found[1].rendered_prompt and found[1].parameters["max_tokens"] == 77
    bodies = [request.body for request in server.chats]
    assert {(body["max_tokens"], body["chat_template_kwargs"]["thinking"]) for body in bodies} == {(77, False)}
    assert sorted(body["seed"] for body in bodies) == [5, 6]
    table = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert table.startswith("\ufeffid,prompt,") and "'=1+1" in table and "什么是大模型？" in table


def test_an_existing_file_is_refused_and_resumed_only_with_the_same_parameters(tmp_path: Path, server: Scripted) -> None:
    write(tmp_path, 6)
    assert ended(tmp_path, command(server))[0] == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    code, printed = ended(tmp_path, command(server))
    assert code == 2 and "out.jsonl exists already" in printed
    lines = before.splitlines(keepends=True)
    (tmp_path / "out.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    code, printed = ended(tmp_path, command(server, "--resume", "--temperature", "1.5"))
    assert code == 2 and "temperature: 0.6 → 1.5" in printed
    asked = len(server.chats)
    code, printed = ended(tmp_path, command(server, "--resume"))
    assert code == 0 and "resumed 3 of 6" in printed and len(server.chats) == asked + 3 and indices(tmp_path) == list(range(6))
    code, printed = ended(tmp_path, command(server, "--resume"))
    assert code == 0 and "resumed 6 of 6" in printed and len(server.chats) == asked + 3


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_another_format_never_writes_over_the_prompts(tmp_path: Path, server: Scripted, resume: list[str]) -> None:
    (tmp_path / "out.csv").write_text("question\nWhy?\n", encoding="utf-8")
    arguments = ["-m", "kimi_demo", "batch", "out.csv", "-o", "out.jsonl", "--base-url", server.base_url, "--format", "csv", *resume]
    code, printed = ended(tmp_path, arguments)
    assert code == 2 and "out.csv exists already" in printed and "--format csv" in printed and not server.chats
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "question\nWhy?\n" and not (tmp_path / "out.jsonl").exists()


def test_another_format_replaces_only_its_own_earlier_one(tmp_path: Path, server: Scripted) -> None:
    write(tmp_path, 2)
    (tmp_path / "out.csv").write_text("somebody's", encoding="utf-8")
    code, printed = ended(tmp_path, command(server, "--format", "csv"))
    assert code == 2 and "out.csv exists already" in printed and (tmp_path / "out.csv").read_text(encoding="utf-8") == "somebody's"
    (tmp_path / "out.csv").unlink()
    for flags in ([], ["--resume"]):
        code, printed = ended(tmp_path, command(server, "--format", "csv", *flags))
        assert code == 0 and (tmp_path / "out.csv").read_text(encoding="utf-8").count("prompt ") == 2, printed


def test_rows_that_fail_make_the_exit_code_1(tmp_path: Path, server: Scripted) -> None:
    write(tmp_path, 3)
    with (tmp_path / "in.txt").open("a") as file:
        file.write("[[rejected]]\n")
    code, printed = ended(tmp_path, command(server, "--max-tokens", "16"))
    failed = [result for result in read_results(tmp_path / "out.jsonl") if result.error]
    assert (code, len(failed)) == (1, 1), printed
    assert "1 failed" in printed and indices(tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("content", "flags", "told"),
    [
        ("", [], "has no row to run"),
        ("x\n", ["--preset", "none"], "There is no preset none"),
        ("x\n", ["--temperature", "9"], "temperature"),
        ("x\n", ["--input-format", "csv", "--column", "y"], "There is no column"),
        ("x\n", ["--encoding", "klingon"], "klingon"),
        ("x\n", ["-o", "out.csv"], "does not end in .jsonl"),
        ("x\n", ["--rows-at-once", "0"], "at least 1"),
        ("x\n", ["--again", "failed"], "--again and --of belong together"),
        ("x\n", ["--again", "failed", "--of", "nothing.jsonl"], "nothing.jsonl.run.json is missing"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path: Path, server: Scripted, content: str, flags: list[str], told: str) -> None:
    (tmp_path / "in.txt").write_text(content)
    code, printed = ended(tmp_path, command(server, *flags))
    assert code == 2 and told in printed and "Traceback" not in printed
    assert not (tmp_path / "out.jsonl").exists() and not server.chats


def test_rows_that_cannot_be_read_are_listed_and_skipped_on_request(tmp_path: Path, server: Scripted) -> None:
    (tmp_path / "in.txt").write_text('"fine"\n{broken\n7\n{"prompt": "fine too"}\n')
    code, printed = ended(tmp_path, command(server, "--input-format", "jsonl"))
    assert code == 2 and "line 2: " in printed and "line 3: " in printed and "--skip-bad" in printed and not server.chats
    code, printed = ended(tmp_path, command(server, "--input-format", "jsonl", "--skip-bad"))
    assert code == 0 and "2 of 2 rows done" in printed and [result.line for result in read_results(tmp_path / "out.jsonl")] != []


def test_a_server_that_is_not_there_is_a_failure(tmp_path: Path, server: Scripted) -> None:
    write(tmp_path, 1)
    code, printed = ended(tmp_path, ["-m", "kimi_demo", "batch", "in.txt", "-o", "out.jsonl", "--base-url", "http://127.0.0.1:9/v1"])
    assert code == 1 and "Nothing is listening" in printed and not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_is_done_and_resume_does_the_rest(tmp_path: Path, server: Scripted, number: signal.Signals) -> None:
    write(tmp_path, 12)
    with (tmp_path / "in.txt").open("a") as file:
        file.write("[[silent seconds=60]]\n" * 3)
    with running(*command(server), cwd=tmp_path) as program:
        program.wait_for("rows to run")
        with server.changed:
            assert server.changed.wait_for(lambda: sum(one.ended_at is not None for one in server.chats) >= 12, 60)
        until_written(tmp_path / "out.jsonl", 12)  # the server is done with a row before the command has it on disk
        program.signal(number)
        code, printed = program.ended(20)
    assert code == 130 and "12 of 15 rows done and kept" in printed and "--resume" in printed, printed
    assert indices(tmp_path) == list(range(12))
    with server.changed:
        assert server.changed.wait_for(lambda: len(server.aborts) == 3, 10), "the server computes them no longer"
    done = [json.loads(line)["prompt"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(done) == len(set(done)) == 12


def test_rows_run_again_as_a_version_of_their_own(tmp_path: Path, server: Scripted) -> None:
    write(tmp_path, 4)
    with (tmp_path / "in.txt").open("a") as file:
        file.write("[[cut_in_thought]] a\n[[rejected]]\n[[cut_in_thought]] b\n")
    assert ended(tmp_path, command(server, "--max-tokens", "50", "--temperature", "0.3", "--no-thinking"))[0] == 1
    again = ["-m", "kimi_demo", "batch", "in.txt", "-o", "out.v2.jsonl", "--base-url", server.base_url, "--of", "out.jsonl"]
    asked = len(server.chats)
    code, printed = ended(tmp_path, [*again, "--again", "cut-off", "--max-tokens", "500"])
    assert code == 0 and "2 of 2 rows done" in printed, printed
    second = list(read_results(tmp_path / "out.v2.jsonl"))
    assert sorted(result.index for result in second) == [4, 6] and len(server.chats) == asked + 2
    assert all((one.parameters["max_tokens"], one.parameters["temperature"], one.thinking) == (500, 0.3, False) for one in second)
    kept = (tmp_path / "out.v2.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "out.v2.jsonl").write_bytes(kept[0])
    code, printed = ended(tmp_path, [*again, "--again", "cut-off", "--max-tokens", "500", "--resume"])
    assert code == 0 and "resumed 1 of 2" in printed and len(server.chats) == asked + 3
    code, printed = ended(tmp_path, [*again, "--again", "failed", "--max-tokens", "500", "--resume"])
    assert code == 2 and "which: cut_off → failed" in printed
    (tmp_path / "in.txt").write_text("other rows\n")
    code, printed = ended(tmp_path, [*again[:5], "new.jsonl", *again[6:], "--again", "all"])
    assert code == 2 and "were made from different rows" in printed


def test_a_terminal_gets_a_progress_bar(tmp_path: Path, server: Scripted) -> None:
    write(tmp_path, 20)
    mine, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KIMI_DEMO_")} | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, *command(server)], cwd=tmp_path, env=environment, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(mine, 65536):
            shown += piece
    except OSError:  # the other end is closed: that is how a terminal ends
        pass
    finally:
        os.close(mine)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and b"20 of 20 rows done" in out
    counts = [int(found) for found in re.findall(rb"(\d+)/20 \[", shown)]
    assert counts and counts == sorted(counts) and counts[-1] == 20 and b"tokens/s" in shown
