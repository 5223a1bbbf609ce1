"""What most browser tests share: the demo on a scripted server, one of each per module, and an opened page per test."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests import scripted_server
from tests.browser.page import DemoPage
from tests.demo import Demo, running
from tests.scripted_server import Scripted


@pytest.fixture(scope="module")
def scripted() -> Iterator[Scripted]:
    with scripted_server.running() as server:
        yield server


@pytest.fixture(scope="module")
def attached(scripted: Scripted, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo on somebody else's server, with the module's own flags (`DEMO_FLAGS`), if it has some."""
    flags: tuple[str, ...] = getattr(request.module, "DEMO_FLAGS", ())
    with running(tmp_path_factory.mktemp("attached"), "--base-url", scripted.base_url, *flags) as demo:
        yield demo


@pytest_asyncio.fixture(loop_scope="session")
async def page(attached: Demo, browser: Browser) -> AsyncIterator[DemoPage]:
    """A page of a browser of its own; nothing may have been complained about in its console at the end."""
    found = await DemoPage.open(browser, attached.address)
    yield found
    assert not found.complaints
    await found.close()
