"""What the tests of the stand-in share."""

from pathlib import Path
from typing import Any

import pytest

from kimi_demo.engines.rehearsal import base, tokenizer
from kimi_demo.engines.rehearsal.data import mixture
from kimi_demo.engines.rehearsal.data.tool_talk import Maker


@pytest.fixture(scope="session")
def maker() -> Maker:
    return mixture.maker()


@pytest.fixture(scope="session")
def kimi_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The stand-in's tokenizer as transformers loads it from a model folder."""
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("tokenizer")
    tokenizer.write_tokenizer(folder, *base.vocabulary_of(base.find_base().path))
    return AutoTokenizer.from_pretrained(folder)
