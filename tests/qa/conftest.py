"""One scripted server for all tests of a module: starting one takes longer than most of them."""

from collections.abc import Iterator

import pytest

from tests.scripted_server import Scripted, running


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as started:
        yield started
