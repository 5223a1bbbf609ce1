import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.processes import Watch, end, living
from tests.engines.living import alive, tree, until

ROOT = Path(__file__).parents[2]
DEAF = "trap '' TERM; sleep 1000 & sleep 1000; wait"
"""A shell that does not hear SIGTERM, with two children."""


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    made = Guardian()
    yield made
    made.close()


def shell(script: str, **options: object) -> "subprocess.Popen[bytes]":
    """A shell that has begun `script`'s last `sleep`."""
    process = subprocess.Popen(["sh", "-c", script], **options)  # type: ignore[call-overload]
    assert until(lambda: len(tree(process.pid)) > script.count("sleep"), 5)
    return process  # type: ignore[no-any-return]


def sleeper() -> "subprocess.Popen[bytes]":
    """One process in a session of its own."""
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


def test_a_session_is_ended_also_after_its_leader(guardian: Guardian) -> None:
    leader = shell("sleep 1000 & sleep 1000; wait", start_new_session=True)
    members = tree(leader.pid)
    guardian.watch_session(leader.pid)
    leader.kill()
    leader.wait()
    assert alive(members) == members - {leader.pid}
    guardian.close()
    assert not alive(members)


def test_a_tree_is_ended_also_what_left_its_session_and_lost_its_parent(guardian: Guardian) -> None:
    parent = shell("sh -c 'setsid sleep 1000 & sleep 1000'; wait")
    members = tree(parent.pid)
    assert until(lambda: any(os.getsid(pid) == pid for pid in members), 5)
    orphan = next(pid for pid in members if os.getsid(pid) == pid)
    guardian.watch(parent.pid)
    _looked(guardian)
    for pid in members - {orphan}:
        os.kill(pid, signal.SIGKILL)
    parent.wait()
    assert until(lambda: alive(members) == {orphan}, 5)
    guardian.close()
    assert not alive(members)


def _looked(guardian: Guardian) -> None:
    """Returns when the guardian has looked at what it watches: once it has begun, it goes to sleep after each look."""
    watcher = psutil.Process(guardian.pid)
    assert until(lambda: _handles(watcher.pid, signal.SIGTERM), 10)
    slept = watcher.num_ctx_switches().voluntary
    assert until(lambda: watcher.num_ctx_switches().voluntary > slept + 3, 10)


def test_what_does_not_hear_is_killed(guardian: Guardian) -> None:
    deaf = shell(DEAF, start_new_session=True)
    members = tree(deaf.pid)
    guardian.watch_session(deaf.pid)
    guardian.close()
    assert not alive(members)
    assert deaf.wait() == -signal.SIGKILL


def test_what_is_forgotten_lives_on(guardian: Guardian) -> None:
    kept, ended = sleeper(), sleeper()
    members = tree(kept.pid)
    guardian.watch_session(kept.pid)
    guardian.watch(ended.pid)
    guardian.forget(kept.pid)
    guardian.close()
    assert alive(members) == members and ended.wait() == -signal.SIGTERM
    end(Watch("session", kept.pid).look, 5)
    assert kept.wait() == -signal.SIGTERM and not alive(members)


def test_the_guardian_starts_when_needed_and_again_when_it_was_killed(guardian: Guardian) -> None:
    assert guardian.pid is None
    process = sleeper()
    guardian.watch_session(process.pid)
    first = guardian.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert until(lambda: not alive([first]), 5)
    guardian.watch(os.getpid() + 10_000_000)  # no such process: nothing to end, but a reason to speak
    assert guardian.pid != first
    guardian.close()
    assert process.wait() == -signal.SIGTERM


def test_the_guardian_is_small_in_a_session_of_its_own_and_deaf_to_the_terminals_signals(guardian: Guardian) -> None:
    process = sleeper()
    guardian.watch_session(process.pid)
    assert guardian.pid is not None
    watcher = psutil.Process(guardian.pid)
    assert until(lambda: os.getsid(watcher.pid) == watcher.pid, 5) and watcher.memory_info().rss < 40 * 2**20
    _looked(guardian)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        watcher.send_signal(number)
    _looked(guardian)
    assert watcher.is_running() and watcher.status() != psutil.STATUS_ZOMBIE and process.poll() is None


def _handles(pid: int, number: signal.Signals) -> bool:
    caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (number - 1))


APPLICATION = """
import os, subprocess, sys, time
from kimi_demo.engines.guardian import Guardian
{before}
guardian = Guardian()
# sh may have the time to say what ended its sleep.
child = subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000; wait"], stderr=subprocess.DEVNULL, start_new_session=True)
guardian.watch_session(child.pid)
print(child.pid, guardian.pid, flush=True)
{after}
time.sleep(1000)
"""


@pytest.mark.parametrize(
    "after",
    [
        "",
        # A forked child keeps the guardian's input open; a thread has made the guardian and ended, as an engine's would.
        "forked = os.fork()\nif forked == 0: time.sleep(1000)\nprint(forked, flush=True)",
        "os.kill(os.getpid(), 9)",
    ],
    ids=["killed", "killed with a forked child left", "kills itself at once"],
)
def test_an_application_that_was_killed_leaves_nothing(after: str) -> None:
    program = APPLICATION.format(before="", after=after)
    application = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert application.stdout is not None
    child, guardian = map(int, application.stdout.readline().split())
    forked = int(application.stdout.readline()) if "fork" in after else None
    application.kill()
    application.wait()
    session = Watch("session", child)
    try:
        assert until(lambda: not session.look() and not alive([child, guardian]), 8)
    finally:
        if forked is not None:
            os.kill(forked, signal.SIGKILL)
        application.stdout.close()


def test_an_application_that_ends_by_itself_leaves_nothing_either() -> None:
    program = APPLICATION.format(before="", after="sys.exit()")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT, text=True, timeout=30)
    child, guardian = map(int, done.stdout.split())
    assert done.stderr == "" and until(lambda: not Watch("session", child).look() and not alive([guardian]), 8)


SHARED_MEMORY = """
import multiprocessing, signal, time
from multiprocessing import shared_memory

def work(name):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(name, flush=True)
    time.sleep(1000)

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    memory = shared_memory.SharedMemory(create=True, size=1024)
    multiprocessing.get_context("spawn").Process(target=work, args=(memory.name,)).start()
    time.sleep(1000)
"""


def test_shared_memory_of_the_killed_is_removed(tmp_path: Path) -> None:
    (tmp_path / "shm.py").write_text(SHARED_MEMORY)
    process = subprocess.Popen([sys.executable, str(tmp_path / "shm.py")], stdout=subprocess.PIPE, start_new_session=True, text=True)
    assert process.stdout is not None
    segment = Path("/dev/shm", process.stdout.readline().strip())
    members = tree(process.pid)
    assert segment.is_file() and len(members) == 3
    end(Watch("session", process.pid).look, 0.2)
    assert process.wait() == -signal.SIGKILL and not alive(members) and not segment.exists()
    process.stdout.close()


def test_a_zombie_is_not_waited_for() -> None:
    process = sleeper()
    began = time.monotonic()
    end(Watch("session", process.pid).look, 30)  # the shell stays a zombie until it is waited for below
    assert time.monotonic() - began < 10 and process.pid not in living()
    assert process.wait() == -signal.SIGTERM


def test_a_pid_that_was_given_anew_is_another_process() -> None:
    process = sleeper()
    watch = Watch("tree", process.pid)
    now = living()
    assert {found.pid for found in watch.look(now)} == tree(process.pid)
    own = now[process.pid]
    later = type(own)(own.pid, own.parent, own.session, own.started + 1)
    assert watch.look({}) == [] and watch.look({own.pid: later}) == []
    end(Watch("tree", process.pid).look, 5)
    process.wait()


def test_names_with_spaces_and_brackets_are_read(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    fields = "S 3 7 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9"
    (tmp_path / "7" / "stat").write_text(f"7 (a ) S 1 (b) {fields}")
    (tmp_path / "8").mkdir()
    (tmp_path / "self").mkdir()
    found = living(tmp_path)
    assert list(found) == [7] and (found[7].parent, found[7].session, found[7].started) == (3, 5, 4711)
    assert living(tmp_path / "none") == {}
