"""What the tests of the engines share: the stand-in's folder, and a server of vLLM's on it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.rehearsal.build import build, cache_folder
from kimi_demo.engines.server import Server
from kimi_demo.settings import Settings
from tests.engines.life import Life


@pytest.fixture(scope="session")
def stand_in() -> Path:
    """The stand-in model, built once into the checkout's data folder."""
    return build(cache_folder(Path(__file__).parents[2] / "data"))


@pytest.fixture(scope="session")
def life(standin_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """A running server; a start takes half a minute, so test_server_again_vllm.py and test_server_vllm.py, which ends it, have one.

    Its methods do not depend on the event loop that it was started on.
    """
    events: list[Event] = []
    guardian = Guardian()
    settings = Settings(_env_file=None, data=tmp_path_factory.mktemp("server"), max_model_len=2048)
    server = asyncio.run(Server.start(Launch.from_settings(settings, str(standin_model)), events.append, guardian))
    yield Life(server, [event for event in events if isinstance(event, Phase)])
    asyncio.run(server.stop())
    guardian.close()
