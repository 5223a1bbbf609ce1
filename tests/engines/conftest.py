"""What the tests of the in-process engine share: the stand-in's folder, and helpers that look at vLLM's processes."""

from pathlib import Path

import pytest

from kimi_demo.engines.rehearsal.build import build, cache_folder


@pytest.fixture(scope="session")
def stand_in() -> Path:
    """The stand-in model, built once into the checkout's data folder."""
    return build(cache_folder(Path(__file__).parents[2] / "data"))
