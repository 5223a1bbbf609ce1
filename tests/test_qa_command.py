"""`qa` as a person and a CI system meet it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from kimi_demo import cli
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.server_note import NotedServer, ServerNote
from kimi_demo.qa.reading import SHIPPED
from kimi_demo.qa.report import read_report
from kimi_demo.qa.running import QaRun
from kimi_demo.qa_command import AGAINST_KEY
from kimi_demo.qa_console import QaConsole
from kimi_demo.ui.texts import texts
from tests.qa.playing import correct, kimi_template, one_case, playing, with_template
from tests.scripted_script import Ask, Script, told
from tests.scripted_server import Scripted, running

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as started:
        yield started


@pytest.fixture(autouse=True)
def template(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_template(monkeypatch, kimi_template)
    monkeypatch.setenv("KIMI_DEMO_DATA", str(tmp_path / "data"))


def own(tmp_path: Path, **checks: Any) -> Path:
    path = tmp_path / "mine.yaml"
    case = {"id": "colour", "ask": "Name a colour.", "checks": checks}
    path.write_text(json.dumps({"name": "mine", "title": {"en": "Mine", "zh": "我的"}, "cases": [case, {"id": "other", "ask": "?"}]}))
    return path


def blue(ask: Ask) -> Script:
    return Script(told("content", "Blue." if ask.thinking else "Red."))


def test_smoke_with_every_report(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {form: tmp_path / "reports" / f"r.{form}" for form in ("json", "html", "junit", "markdown")}
    flags = [text for form, path in files.items() for text in (f"--{form}", str(path))]
    with playing(server, correct):
        assert cli.main(["qa", "smoke", "--base-url", server.base_url, *flags]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "6 passed" and "ok   tool-call" in printed.out and "Traceback" not in printed.err
    report = read_report(files["json"])
    assert report.suite == "smoke" and report.counts == {"pass": 6} and report.server.address == server.base_url
    assert "<h1>Smoke</h1>" in files["html"].read_text() and files["markdown"].read_text().startswith("# Smoke")
    assert xml.parse(files["junit"]).getroot().attrib["failures"] == "0"


def test_what_fails_is_said_and_ends_with_1(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with playing(server, blue):
        assert cli.main(["qa", str(own(tmp_path, answer={"contains": "green"})), "--base-url", server.base_url]) == 1
    printed = capsys.readouterr().out
    assert "FAIL colour" in printed and "expected: green; got: Blue." in printed and "1 failed, 1 passed" in printed


def test_chinese(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with playing(server, blue):
        assert cli.main(["qa", str(own(tmp_path)), "--base-url", server.base_url, "--language", "zh"]) == 0
    printed = capsys.readouterr()
    assert "2 通过" in printed.out and "我的" in printed.err


def test_against_a_baseline(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite, baseline, html = own(tmp_path, answer={"contains": "blue"}), tmp_path / "base.json", tmp_path / "r.html"
    with playing(server, blue):
        assert cli.main(["qa", str(suite), "--base-url", server.base_url, "--json", str(baseline)]) == 0
        assert cli.main(["qa", str(suite), "--base-url", server.base_url, "--baseline", str(baseline)]) == 0
    assert "0 checks are worse" in capsys.readouterr().out
    with playing(server, lambda ask: Script(told("content", "Red."))):
        arguments = ["qa", str(suite), "--base-url", server.base_url, "--baseline", str(baseline), "--html", str(html)]
        assert cli.main(arguments) == 1
    assert "worse: colour the answer contains" in capsys.readouterr().out and "1 checks are worse" in html.read_text()


def test_thinking_against_instant(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = own(tmp_path, answer={"contains": "blue"})
    with playing(server, blue):
        assert cli.main(["qa", str(suite), "--base-url", server.base_url, "--mode", "instant", "--against-mode", "thinking"]) == 1
        modes = [chat.body["chat_template_kwargs"]["thinking"] for chat in server.chats]
    assert sorted(modes[:2]) == [True, True] and sorted(modes[2:]) == [False, False]
    assert "worse: colour" in capsys.readouterr().out


def test_preset_against_preset(server: Scripted, tmp_path: Path) -> None:
    with playing(server, blue):
        arguments = ["qa", str(own(tmp_path)), "--base-url", server.base_url, "--preset", "tools", "--against-preset", "guide_thinking"]
        assert cli.main(arguments) == 0
        assert [chat.body["temperature"] for chat in server.chats] == [0.6, 0.6, 0.01, 0.01]


def test_two_servers(server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(AGAINST_KEY, "other-key")
    suite, out = own(tmp_path, answer={"contains": "blue"}), tmp_path / "r.json"
    with playing(server, blue), running(api_key="other-key") as other:
        other.name = "qa"
        arguments = ["qa", str(suite), "--base-url", server.base_url, "--against", other.base_url, "--json", str(out)]
        assert cli.main(arguments) == 0
        assert len(server.chats) == len(other.chats) == 2
    printed = capsys.readouterr()
    assert "0 checks are worse" in printed.out and "other-key" not in printed.out + printed.err + out.read_text()


def test_the_pages_server_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(api_key="secret") as pages:
        note = NotedServer(
            base_url=pages.base_url, api_key="secret", pid=os.getpid(), command=("python", "-m", "vllm", "--max-model-len", "8192")
        )
        ServerNote(tmp_path / "data").write(note)
        out = tmp_path / "r.json"
        assert cli.main(["qa", str(own(tmp_path)), "--json", str(out)]) == 0
    printed = capsys.readouterr()
    assert "the page has started" in printed.err and "--max-model-len 8192" in printed.err
    assert "secret" not in out.read_text() + printed.out + printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name a suite"),
        (("smoke", "--requests", "x.jsonl"), "Name a suite"),
        (("nothing",), "There is no suite nothing"),
        (("smoke", "--only", "nobody"), "There is no case nobody"),
        (("smoke", "--baseline", "/no/such.json"), "/no/such.json"),
        (("smoke", "--limit-s", "0"), "--limit-s"),
        (("smoke", "--html", "/proc/nowhere/x.html"), "/proc/nowhere/x.html"),
        (("--requests", "/no/such.jsonl"), "/no/such.jsonl"),
        (("--requests", "x.jsonl", "--html", "x.html"), "--html has no meaning"),
        (("smoke", "--resume"), "--resume is for --requests"),
    ],
)
def test_bad_input_is_named_and_ends_with_2(
    arguments: tuple[str, ...], said: str, server: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    with playing(server, correct):
        assert cli.main(["qa", *arguments, "--base-url", server.base_url]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and "Traceback" not in printed.err and not server.chats


@pytest.mark.parametrize("arguments", [("--repeats", "0"), ("--at-once", "x"), ("--body", "[1]"), ("--body", "{"), ("--mode", "deep")])
def test_flags_are_checked(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["qa", "smoke", *arguments])
    assert left.value.code == 2 and arguments[0] in capsys.readouterr().err


def test_a_mistake_in_a_suite_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: x\ntitle: t\ncases:\n  - id: a\n    ask: hi\n    cheks: {}\n")
    assert cli.main(["qa", str(path)]) == 2
    assert f"{path}, line 6: cases.0.cheks" in capsys.readouterr().err


def test_no_server_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["qa", "smoke", "--base-url", "http://127.0.0.1:9/v1"]) == 2
    assert "Nothing is listening" in capsys.readouterr().err


def test_only_and_repeats(server: Scripted) -> None:
    with playing(server, correct):
        assert cli.main(["qa", "smoke", "--base-url", server.base_url, "--only", "chat-instant", "--repeats", "3", "--at-once", "1"]) == 0
        assert len(server.chats) == 6  # streamed and in one piece


def test_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data" / "suites"
    folder.mkdir(parents=True)
    own(folder)
    assert cli.main(["qa", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*SHIPPED, "mine"]
    assert cli.main(["qa", "guide", "--list"]) == 0
    assert "tools-decimals" in capsys.readouterr().out


def test_a_broken_suite_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data" / "suites"
    folder.mkdir(parents=True)
    own(folder)
    (folder / "broken.yaml").write_text("cases: [1\n", encoding="utf-8")
    assert cli.main(["qa", "--list"]) == 2
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == [*SHIPPED, "mine"]
    assert "broken.yaml, line 2" in printed.err


async def test_nobody_reads_on() -> None:
    """As with `| head`."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "kimi_demo", "qa", "--list"]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=write, stderr=asyncio.subprocess.PIPE)
    os.close(write)
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    assert process.returncode == 0 and errors == b""


def test_a_suite_in_the_data_folder(server: Scripted, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "suites"
    folder.mkdir(parents=True)
    own(folder)
    with playing(server, blue):
        assert cli.main(["qa", "mine", "--base-url", server.base_url]) == 0


def test_nothing_that_a_model_says_reaches_the_terminal_raw(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with playing(server, lambda ask: Script(told("content", "\x1b]0;owned\x07\x1b[2J\u202egreen\r"))):
        cli.main(["qa", str(own(tmp_path, answer={"contains": "blue"})), "--base-url", server.base_url])
    printed = capsys.readouterr()
    assert not set("\x1b\x07\r\u202e") & set(printed.out + printed.err) and "owned" in printed.out


async def test_judging_in_the_terminal(server: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    suite = one_case(ask="{{n}}?", each=[{"n": 1}, {"n": 2}, {"n": 3}], manual="Is it friendly?")
    answers = iter(["p", "f much too short", ""])
    with playing(server, blue):
        endpoint = await Endpoint.connect(server.base_url)
        run = QaRun(endpoint, suite)
        await run.run()
        await QaConsole(texts(), lambda question: next(answers)).judge(run)
        await endpoint.aclose()
    report = run.report()
    assert [case.state for case in report.cases] == ["pass", "fail", "open"] and report.cases[1].note == "much too short"
    assert "Is it friendly?" in capsys.readouterr().out


def test_moonshots_requests(server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = {"type": "function", "function": {"name": "count_letter_in_string", "parameters": {"type": "object", "required": ["a", "b"]}}}
    asked = ["How many r are in strawberry?", "Hello."]
    path, reference, out = tmp_path / "samples.jsonl", tmp_path / "ref.jsonl", tmp_path / "sum.json"
    path.write_text("".join(json.dumps({"messages": [{"role": "user", "content": text}], "tools": [tool]}) + "\n" for text in asked))
    reference.write_text("".join(json.dumps({"data_index": i, "status": "success", "finish_reason": "tool_calls"}) + "\n" for i in (1, 2)))
    arguments = ["qa", "--requests", str(path), "--base-url", server.base_url, "--mode", "instant", "--json", str(out)]
    with playing(server, correct):
        assert cli.main([*arguments, "--reference", str(reference)]) == 0
        assert all(chat.body["chat_template_kwargs"] == {"thinking": False} for chat in server.chats)
        found = json.loads(out.read_text())
        assert found["schema_accuracy"] == 1.0 and found["tool_call_f1"] == pytest.approx(2 / 3) and found["counts"]["FN"] == 1
        assert cli.main(arguments) == 2
        assert "--resume" in capsys.readouterr().err
        assert cli.main([*arguments, "--resume"]) == 0
        assert len(server.chats) == 2
        assert cli.main([*arguments, "--resume", "--body", '{"n": 1}']) == 2
    assert (tmp_path / "samples.jsonl.results.jsonl").exists()


@pytest.mark.parametrize("what", ["suite", "requests"])
async def test_interrupted_it_keeps_what_it_has(what: str, server: Scripted, tmp_path: Path) -> None:
    def play(ask: Ask) -> Script:
        return Script(told("content", "Blue."), silence_s=0 if "colour" in str(ask.body["messages"]) else 600)

    requests = tmp_path / "r.jsonl"
    requests.write_text("".join(json.dumps({"messages": [{"role": "user", "content": text}]}) + "\n" for text in ("a colour", "b")))
    out = tmp_path / "out.json"
    given = [str(own(tmp_path))] if what == "suite" else ["--requests", str(requests), "--at-once", "1"]
    with playing(server, play):
        command = [sys.executable, "-m", "kimi_demo", "qa", *given, "--base-url", server.base_url, "--json", str(out)]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
        try:
            await server.arrived(2, timeout_s=60)
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(60):
                printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        await server.aborted(1)
    assert process.returncode == 130 and b"Traceback" not in printed, printed
    if what == "suite":
        assert read_report(out).stopped and read_report(out).counts["waiting"] >= 1
    else:
        assert json.loads(out.read_text())["success_count"] == 1
