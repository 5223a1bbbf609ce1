"""Whether a model's folder is whole, told from its own files."""

import json
import struct
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.complete import inspect, require_complete
from kimi_demo.ui.texts import texts
from tests.engines.hub.models import model_files, safetensors

SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in model_files(size=1000).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def faults(folder: Path) -> dict[str, str]:
    return {damage.file: damage.fault for damage in inspect(folder).damage}


def test_a_whole_folder(folder: Path) -> None:
    found = inspect(folder)
    assert found.complete and found.weights == 2
    require_complete(folder)


def test_the_stand_in_is_whole(standin_model: Path) -> None:
    assert inspect(standin_model).complete


def test_a_missing_shard(folder: Path) -> None:
    (folder / SHARD).unlink()
    assert faults(folder) == {SHARD: "missing"}


@pytest.mark.parametrize("left", [0, 5, 40, 900])
def test_a_shard_that_was_cut_off(folder: Path, left: int) -> None:
    whole = (folder / SHARD).read_bytes()
    (folder / SHARD).write_bytes(whole[:left])
    assert faults(folder) == {SHARD: "short"}


def test_a_shard_with_something_behind_it(folder: Path) -> None:
    (folder / SHARD).write_bytes((folder / SHARD).read_bytes() + b"x")
    assert faults(folder) == {SHARD: "long"}


@pytest.mark.parametrize("content", [struct.pack("<Q", 2**62) + b"{}", struct.pack("<Q", 4) + b"nono", struct.pack("<Q", 2) + b"[]"])
def test_a_shard_that_is_none(folder: Path, content: bytes) -> None:
    (folder / SHARD).write_bytes(content)
    assert faults(folder) == {SHARD: "unreadable"}


def test_pointers_that_a_clone_without_lfs_leaves(folder: Path) -> None:
    (folder / SHARD).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1000\n")
    assert faults(folder) == {SHARD: "pointer"}


@pytest.mark.parametrize("name", [f"{SHARD}.incomplete", "._____temp/x.safetensors", ".cache/huggingface/download/a.b.incomplete"])
def test_a_download_that_goes_on(folder: Path, name: str) -> None:
    (folder / SHARD).unlink()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"x")
    assert faults(folder) == {SHARD: "missing", name: "partial"}


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"weight_map": 5}', b"[]", json.dumps({"weight_map": {"a": "../../etc/passwd"}}).encode()]
)
def test_an_index_that_cannot_be_used(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors.index.json").write_bytes(content)
    assert faults(folder)["model.safetensors.index.json"] == "unreadable"


def test_without_an_index_the_files_that_are_there_count(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert inspect(tmp_path).weights == 0 and inspect(tmp_path).complete
    (tmp_path / "model.safetensors").write_bytes(safetensors(100)[:-1])
    assert faults(tmp_path) == {"model.safetensors": "short"}


def test_no_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert faults(folder) == {"config.json": "missing"}


@pytest.mark.parametrize("fault", ["missing", "short", "long", "pointer", "unreadable", "partial"])
def test_each_fault_has_its_words(fault: str) -> None:
    for language in ("en", "zh"):
        said = texts(language).sentence(Failure(f"model.incomplete_{fault}", path="/models/x", file=SHARD, count=3, whole=1))
        assert SHARD in said and "/models/x" in said


def test_the_failure_names_the_first_file(folder: Path) -> None:
    (folder / SHARD).unlink()
    (folder / "config.json").unlink()
    with pytest.raises(Failure) as failed:
        require_complete(folder)
    assert failed.value.code == "model.incomplete_missing" and failed.value.params["file"] == "config.json"
    assert (failed.value.params["count"], failed.value.params["whole"]) == ("2", "1")
