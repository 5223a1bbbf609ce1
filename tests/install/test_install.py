"""scripts/install.py as a person runs it, with a package index on this machine: twice, interrupted, two at once, cut off."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.installer import pip
from scripts.installer.environment import Environment
from scripts.installer.plan import Step
from scripts.installer.stop import Stop
from tests.install.index import Index, serving

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and make")


class Checkout:
    """A copy of the installer in a folder of its own, with locks of two tiny packages."""

    def __init__(self, folder: Path, index: str) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "requirements-page.txt").write_text("first==1.0\nsecond==1.0\n")
        (folder / "requirements-test.txt").write_text("third==1.0\n")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "KIMI_DEMO_"))}
        self.environment = {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "scripts/install.py", "--kind", "page", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def installed(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob(".venv/lib/python3.*/site-packages/*.py"))

    def stamp(self) -> dict[str, str]:
        path = self.folder / ".venv/kimi-demo.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    @property
    def log(self) -> str:
        return (self.folder / ".venv.log").read_text()


@pytest.fixture
def index() -> Iterator[Index]:
    with serving(("first", "second", "third"), held_back="second") as index:
        yield index


@pytest.fixture
def checkout(tmp_path: Path, index: Index, bare: Path) -> Checkout:
    """With an environment begun, as after an interruption."""
    shutil.copytree(bare, tmp_path / ".venv", symlinks=True)
    return Checkout(tmp_path, index.url)


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def test_a_second_start_asks_no_network_and_changes_nothing(tmp_path: Path, index: Index) -> None:
    checkout = Checkout(tmp_path, index.url)
    index.release.set()
    first = checkout.run("--tools")
    assert first.returncode == 0, first.stderr
    assert {"first.py", "second.py", "third.py"} <= set(checkout.installed())
    fetched, log, stamp = dict(index.fetched), checkout.log, checkout.stamp()
    checkout.environment["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"
    second = checkout.run("--tools")
    assert (second.returncode, second.stderr) == (0, "")
    assert (dict(index.fetched), checkout.log, checkout.stamp()) == (fetched, log, stamp)


def test_a_changed_lock_is_installed_and_an_added_comment_is_not(checkout: Checkout, index: Index) -> None:
    index.release.set()
    lock = checkout.folder / "requirements-page.txt"
    lock.write_text("first==1.0\n")
    assert checkout.run().returncode == 0
    lock.write_text("# words\nfirst==1.0\n")
    log = checkout.log
    assert checkout.run().returncode == 0
    assert checkout.log == log
    lock.write_text("first==1.0\nsecond==1.0\n")
    assert checkout.run().returncode == 0
    assert "second.py" in checkout.installed()
    assert index.fetched["first-1.0-py3-none-any.whl"] == 1, "what was there is kept"


def test_an_interrupted_installation_is_not_taken_for_done_and_is_gone_on_with(checkout: Checkout, index: Index) -> None:
    process = checkout.start()
    assert index.asked.wait(60)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert "application" not in checkout.stamp()
    index.release.set()
    again = checkout.run()
    assert again.returncode == 0, again.stderr
    assert {"first.py", "second.py"} <= set(checkout.installed())
    assert "application" in checkout.stamp()


def test_control_c_says_how_to_go_on(checkout: Checkout, index: Index) -> None:
    process = checkout.start()
    assert index.asked.wait(60)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on where it stopped" in err and "Traceback" not in err
    assert "application" not in checkout.stamp()


def test_two_at_once_wait_for_each_other(checkout: Checkout, index: Index) -> None:
    one = checkout.start()
    assert index.asked.wait(60)
    other = checkout.start()
    assert "waiting" in first_line(other)
    index.release.set()
    assert one.wait(60) == 0 and other.wait(60) == 0
    assert index.fetched == {"first-1.0-py3-none-any.whl": 1, "second-1.0-py3-none-any.whl": 1}
    for process in (one, other):
        process.communicate()


def test_a_pip_whose_parent_was_killed_is_waited_for(checkout: Checkout, index: Index) -> None:
    killed = checkout.start()
    assert index.asked.wait(60)
    killed.kill()  # the installer alone; its pip goes on
    killed.wait()
    other = checkout.start()
    assert "waiting" in first_line(other)
    assert other.poll() is None
    index.release.set()
    _, err = other.communicate(timeout=60)
    killed.communicate()
    assert other.returncode == 0, err
    assert {"first.py", "second.py"} <= set(checkout.installed())


def test_an_index_out_of_reach_is_one_sentence(checkout: Checkout) -> None:
    checkout.environment.update(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="1")
    failed = checkout.run()
    assert failed.returncode == 1
    assert "cannot be reached" in failed.stderr and "Traceback" not in failed.stderr
    assert "application" not in checkout.stamp()


def test_what_pip_does_not_find_is_asked_for_elsewhere(tmp_path: Path, index: Index, bare: Path) -> None:
    """As torch is: first as pip is set up, then from an index of its own."""
    shutil.copytree(bare, tmp_path / ".venv", symlinks=True)
    environment, log = Environment(tmp_path / ".venv"), tmp_path / "log"
    with serving(("elsewhere",)) as other, log.open("w") as held:
        plain = ("--index-url", index.url, "elsewhere==1.0")
        with pytest.raises(Stop, match="does not have elsewhere==1.0"):
            pip.install(environment.python, Step("a package", plain), log, held.fileno(), tmp_path / "tmp")
        (tmp_path / "constraints.txt").write_text("elsewhere<2\n")  # with one, pip's failure reads quite differently
        bound = (*plain, "--constraint", str(tmp_path / "constraints.txt"))
        nowhere = Step("a package", bound, ("--index-url", index.url, "elsewhere==1.0"), "The other index")
        with pytest.raises(Stop, match="The other index does not have elsewhere==1.0"):
            pip.install(environment.python, nowhere, log, held.fileno(), tmp_path / "tmp")
        step = Step("a package", bound, ("--index-url", other.url, "elsewhere==1.0"), "The other index")
        pip.install(environment.python, step, log, held.fileno(), tmp_path / "tmp")
        assert other.fetched["elsewhere-1.0-py3-none-any.whl"] == 1
    assert (environment.site_packages() / "elsewhere.py").exists()
