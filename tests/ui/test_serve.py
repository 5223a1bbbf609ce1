"""The page's life as a process: starting page, swap, streams, signals, failures. What is served is tests/ui/stub_page.py."""

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gradio.tunneling as tunneling
import httpx

from tests.programs import Program, running

STUB = str(Path(__file__).with_name("stub_page.py"))


@contextmanager
def started(tmp_path: Path, *flags: str) -> Iterator[tuple[Program, str]]:
    with running(STUB, "--port", "0", *flags, cwd=tmp_path) as program:
        yield program, program.wait_for(r"http://127\.0\.0\.1:\d+/\?operator=\S+")[0]


def root(address: str) -> str:
    return address.split("?")[0]


def test_it_answers_before_the_page_is_built_and_swaps_it_in(tmp_path: Path) -> None:
    with started(tmp_path) as (program, address):
        first = httpx.get(root(address), headers={"accept-language": "zh-CN"})
        assert first.status_code == 200 and "演示正在启动" in first.text and "refresh" in first.text
        assert first.headers["cache-control"] == "no-store" and "content-security-policy" in first.headers
        assert httpx.get(root(address) + "healthz").json() == {"status": "starting"}
        program.tell("go")
        program.wait_for("alive")
        while (now := httpx.get(root(address))).text != "the page":
            assert "The demo is starting" in now.text
        assert httpx.get(root(address) + "healthz").json() == {"status": "ready"}


def test_an_early_api_call_waits_for_the_page(tmp_path: Path) -> None:
    with started(tmp_path) as (program, address):
        with httpx.stream("POST", root(address) + "healthz") as health:  # the server is up
            assert health.status_code == 200
        answers: list[httpx.Response] = []
        call = threading.Thread(target=lambda: answers.append(httpx.get(root(address) + "kimi/nothing", timeout=60)))
        call.start()
        program.tell("go")
        call.join(60)
        assert answers[0].status_code == 404 and answers[0].text == "Not Found"  # Starlette's own answer


def test_the_operator_s_link_works_while_it_starts(tmp_path: Path) -> None:
    with started(tmp_path) as (_, address):
        answer = httpx.get(address)
        assert answer.status_code == 303 and answer.headers["location"] == "/" and "kimi_demo_operator_" in answer.headers["set-cookie"]


def test_a_signal_ends_streams_then_the_page_then_its_runs_and_engines(tmp_path: Path) -> None:
    with started(tmp_path) as (program, address):
        program.tell("go")
        program.wait_for("alive")
        with httpx.stream("GET", root(address) + "kimi/stream") as stream:
            chunks = stream.iter_raw()
            assert next(chunks) == b"first"
            program.signal(signal.SIGTERM)
            program.wait_for("closing")
            program.tell("close")
            assert list(chunks) == []  # ended properly, not cut: httpx would raise
        code, printed = program.ended()
        assert code == 0
        assert printed.index("Stopping") < printed.index("stream ended") < printed.index("lifespan ended") < printed.index("closing")
        assert "Traceback" not in printed and "rror" not in printed


def test_ctrl_c_while_the_page_is_built_ends_it(tmp_path: Path) -> None:
    with started(tmp_path) as (program, _):
        program.signal(signal.SIGINT)
        code, printed = program.ended()
        assert code == 0 and "Stopping" in printed and "Traceback" not in printed


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    with started(tmp_path) as (program, address):
        program.tell("go")
        program.wait_for("alive")
        while httpx.get(root(address)).text != "the page":
            pass
        program.signal(signal.SIGINT)
        program.wait_for("closing")
        program.tell("hang")
        program.signal(signal.SIGINT)
        assert program.ended()[0] == 130


def test_while_it_closes_newcomers_are_told(tmp_path: Path) -> None:
    with started(tmp_path) as (program, address):
        program.tell("go")
        program.wait_for("alive")
        while httpx.get(root(address)).text != "the page":
            pass
        program.signal(signal.SIGTERM)
        program.wait_for("closing")
        answer = httpx.get(root(address))
        assert answer.status_code == 503 and "shutting down" in answer.text
        program.tell("close")
        assert program.ended()[0] == 0


def test_a_page_that_cannot_be_built_ends_it_with_its_sentence(tmp_path: Path) -> None:
    with started(tmp_path) as (program, _):
        program.tell("raise")
        code, printed = program.ended()
        assert code == 1 and "stub: Only the operator may do this." in printed and "Traceback" not in printed


def test_the_password_holds_from_the_first_moment(tmp_path: Path) -> None:
    with started(tmp_path, "--auth", "ann:hunter2") as (program, address):
        assert httpx.get(root(address)).status_code == 401
        assert httpx.get(root(address), auth=("ann", "hunter2")).status_code == 200
        assert "hunter2" not in "".join(program.printed)


def test_an_invitation_is_printed_and_lets_in(tmp_path: Path) -> None:
    with started(tmp_path, "--invite-hours", "1") as (program, address):
        link = program.wait_for(r"Invitation for viewers, good for 1 h: (http\S+)")[1]
        assert httpx.get(root(address), headers={"accept": "text/html"}).headers["location"] == "/kimi/sign-in"
        program.tell("go")
        program.wait_for("alive")
        with httpx.Client(follow_redirects=True) as guest:
            while (page := guest.get(link)).text != "the page":
                assert "The demo is starting" in page.text
        program.signal(signal.SIGTERM)
        program.wait_for("closing")
        program.tell("close")
        assert program.ended()[0] == 0


def test_without_a_public_link_the_page_goes_on(tmp_path: Path) -> None:
    nowhere = {"GRADIO_SHARE_SERVER_ADDRESS": "127.0.0.1:9", "HF_HOME": str(tmp_path), "HTTPS_PROXY": "http://127.0.0.1:9"}
    with running(STUB, "--port", "0", "--share", "--auth", "a:b", cwd=tmp_path, **nowhere) as program:
        address = program.wait_for(r"http://127\.0\.0\.1:\d+/")[0]
        program.tell("go")
        program.wait_for("No public link: the tunnel program could not be downloaded")
        assert httpx.get(address, auth=("a", "b")).text == "the page"
        program.signal(signal.SIGTERM)
        program.wait_for("closing")
        program.tell("close")
        assert program.ended()[0] == 0


def test_the_public_name_is_let_in_and_the_tunnel_dies_with_the_program(tmp_path: Path) -> None:
    client = tmp_path / "gradio" / "frpc" / Path(tunneling.BINARY_PATH).name
    client.parent.mkdir(parents=True)
    client.write_text(
        f"#!{sys.executable}\nimport os, time\nopen('pid', 'w').write(str(os.getpid()))\n"
        "print('start proxy success: https://abc.gradio.live', flush=True)\ntime.sleep(600)\n"
    )
    client.chmod(0o700)
    environment = {"GRADIO_SHARE_SERVER_ADDRESS": "127.0.0.1:9", "HF_HOME": str(tmp_path), "STUB_TUNNEL": "1"}
    with running(STUB, "--port", "0", "--share", "--auth", "a:b", cwd=tmp_path, **environment) as program:
        address = program.wait_for(r"http://127\.0\.0\.1:\d+/")[0]
        public = {"host": "abc.gradio.live", "origin": "https://abc.gradio.live"}
        assert httpx.get(address, headers=public, auth=("a", "b")).status_code == 421
        program.tell("go")
        assert program.wait_for("Public link: (.*)")[1] == "https://abc.gradio.live"
        assert httpx.get(address, headers=public, auth=("a", "b")).text == "the page"
        assert httpx.get(address, headers=public).status_code == 401
        tunnel = os.pidfd_open(int((tmp_path / "pid").read_text()))
        program.signal(signal.SIGKILL)
        assert select.select([tunnel], [], [], 30)[0], "the tunnel outlived the program"
        os.close(tunnel)
