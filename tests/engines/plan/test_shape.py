"""Shapes out of config.json files: published ones, and broken ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.plan.known import K25_CONFIG, known_shape
from kimi_demo.engines.plan.shape import read_shape, shape_of
from kimi_demo.engines.plan.weights import total_bytes
from tests.engines.plan.configs import DEEPSEEK_V3, LLAMA_2_7B, LLAMA_3_70B, MIXTRAL


@pytest.mark.parametrize(
    ("config", "attention", "published"),
    [
        # Parameters as the models' cards give them, times bytes.
        (LLAMA_3_70B, "GQA", 70.55e9 * 2),
        (LLAMA_2_7B, "MHA", 6.74e9 * 2),
        (MIXTRAL, "GQA", 46.7e9 * 2),
        (DEEPSEEK_V3, "MLA", 671e9),
        (K25_CONFIG, "MLA", 595e9),
    ],
)
def test_the_weights_of_published_models(config: dict[str, Any], attention: str, published: float) -> None:
    shape = shape_of(config)
    assert shape.attention == attention
    assert total_bytes(shape) == pytest.approx(published, rel=0.01)


def test_kimi_k25_is_known_without_its_files_whatever_the_case() -> None:
    assert known_shape("MoonshotAI/kimi-k2.5") == known_shape("K2.5") == shape_of(K25_CONFIG)
    assert known_shape("moonshotai/Kimi-K2") is None


def test_only_its_routed_experts_are_quantised() -> None:
    shape = shape_of(K25_CONFIG)
    assert shape.quantisation is not None and shape.quantisation.bits == 4.5  # a 16-bit scale for each 32 weights of 4 bits
    covers = shape.quantisation.covers
    layer = "language_model.model.layers.7."
    assert covers(layer + "mlp.experts.3.up_proj")
    assert not covers(layer + "self_attn.kv_b_proj")
    assert not covers(layer + "mlp.shared_experts.up_proj")
    assert not covers("language_model.model.layers.0.mlp.down_proj")


@pytest.mark.parametrize(
    ("quantised", "bits"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 4.125),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, 4.25),
        ({"quant_method": "fp8"}, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, 8),
        ({"quant_method": "mxfp4"}, 4.25),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 8, "group_size": None}}}}, 8),
    ],
)
def test_kinds_of_quantisation(quantised: dict[str, Any], bits: float) -> None:
    found = shape_of({**MIXTRAL, "quantization_config": quantised}).quantisation
    assert found is not None and found.bits == bits


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"hidden_size": None}, "plan.config_field"),
        ({"num_hidden_layers": "many"}, "plan.config_field"),
        ({"num_attention_heads": -8}, "plan.config_field"),
        ({"vocab_size": True}, "plan.config_field"),
        ({"num_key_value_heads": 2**70}, "plan.config_field"),
        ({"layer_types": ["linear_attention", "full_attention"]}, "plan.unknown_kind"),
        ({"model_type": "mamba2"}, "plan.unknown_kind"),
        ({"quantization_config": {"quant_method": "telepathy"}}, "plan.quantisation"),
        ({"quantization_config": {"quant_method": "gptq", "bits": "four"}}, "plan.config_field"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "plan.config_field"),
    ],
)
def test_what_cannot_be_planned_is_said(change: dict[str, Any], code: str) -> None:
    with pytest.raises(Failure) as failed:
        shape_of({**LLAMA_3_70B, **change})
    assert failed.value.code == code


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe{}", b"[" * 100_000])
def test_a_broken_config_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(Failure) as failed:
        read_shape(tmp_path)
    assert failed.value.code == "plan.config_unreadable" and "config.json" in failed.value.params["path"]


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed:
        read_shape(tmp_path)
    assert failed.value.code == "plan.no_config"


def test_the_stand_ins_weights_are_those_of_its_file(standin_model: Path) -> None:
    config = json.loads((standin_model / "config.json").read_text())
    assert total_bytes(shape_of(config)) == pytest.approx((standin_model / "model.safetensors").stat().st_size, rel=0.001)
