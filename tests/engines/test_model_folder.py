"""What the engines are given as a model: only folders that are whole."""

from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.settings import Settings
from tests.engines.hub.models import model_files


async def path_of(model: str) -> str:
    return await ModelFolder(Settings(_env_file=None, model=model)).path(lambda event: None)


def laid_out(folder: Path) -> Path:
    for name, content in model_files(size=100).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


async def test_a_whole_folder_is_taken(tmp_path: Path) -> None:
    assert await path_of(str(laid_out(tmp_path))) == str(tmp_path)


async def test_a_folder_that_lacks_a_shard_is_refused_before_an_engine_starts(tmp_path: Path) -> None:
    (laid_out(tmp_path) / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(Failure) as failed:
        await path_of(str(tmp_path))
    assert failed.value.code == "model.incomplete_missing" and failed.value.params["file"] == "model-00002-of-00002.safetensors"


async def test_hub_ids_and_folders_that_are_not_there(tmp_path: Path) -> None:
    assert await path_of("moonshotai/Kimi-K2.5") == "moonshotai/Kimi-K2.5"
    with pytest.raises(Failure) as failed:
        await path_of(str(tmp_path / "none"))
    assert failed.value.code == "model.path_missing"
