"""What many tests share: the stand-in model, the running demo, a browser. Each is made once per session, when it is first needed."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from scripts.installer.browser import system_chromium
from tests.demo import Demo, running

ROOT = Path(__file__).parents[1]
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


expect.set_options(timeout=20_000)
"""Milliseconds until an expectation of the page counts as failed. Playwright's five are too few beside an engine on two cores."""

# Started in the background (`make test &`, some CI runners), Ctrl-C is ignored, and every program that a test starts inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the running demo comes last: its two engines would share two cores and the memory with those of other tests."""
    items.sort(key=lambda item: "demo" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The data folder of `make install`, where the stand-in is built once and kept."""
    return Path(os.environ.get("KIMI_DEMO_DATA") or ROOT / "data").resolve()


@pytest.fixture(scope="session")
def standin_model(data_folder: Path) -> Path:
    """The folder of the built stand-in."""
    from kimi_demo.engines.rehearsal.build import build, cache_folder

    return build(cache_folder(data_folder))


@pytest.fixture(scope="session")
def demo(standin_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """`python app.py` with the stand-in on real vLLM, in a data folder of its own."""
    data = tmp_path_factory.mktemp("demo")
    (data / "rehearsal").symlink_to(standin_model.parent)
    with running(data) as found:
        yield found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Headless Chromium: the system's, else Playwright's own."""
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=system_chromium(), args=CHROMIUM_FLAGS)
        yield launched
        await launched.close()
