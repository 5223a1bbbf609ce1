"""The folder of Kimi K2.5's shape: the published figures, smaller ones, and what is refused."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.complete import inspect
from kimi_demo.engines.kimi_shape import FULL, NOTE, TINY, KimiShape, check, config, most_layers, write
from kimi_demo.engines.plan.fit import plan
from kimi_demo.engines.plan.known import K25_BYTES
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import Machine, machine
from kimi_demo.engines.plan.shape import read_shape, shape_of
from kimi_demo.engines.plan.weights import total_bytes

H200 = Machine("h200", "H200", 1, 143_771 * 2**20)

LOADER = """
import json, sys
from vllm.engine.arg_utils import EngineArgs
for folder in sys.argv[1:]:
    model = EngineArgs(model=folder, load_format="dummy").create_model_config()
    print("found", json.dumps([model.architectures, model.max_model_len, model.get_vocab_size(), model.use_mla, model.quantization]))
"""


def test_the_published_figures() -> None:
    found = config(FULL)
    published = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "num_hidden_layers": 61,
        "first_k_dense_replace": 1,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 384,
        "num_experts_per_tok": 8,
        "n_shared_experts": 1,
        "num_attention_heads": 64,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "n_group": 1,
        "routed_scaling_factor": 2.827,
        "norm_topk_prob": True,
        "vocab_size": 163840,
        "max_position_embeddings": 262144,
        "rope_theta": 50000.0,
    }
    assert {name: found[name] for name in published} == published
    assert found["rope_scaling"]["factor"] * found["rope_scaling"]["original_max_position_embeddings"] == 262144
    weights = found["quantization_config"]["config_groups"]["group_0"]["weights"]
    assert (weights["num_bits"], weights["group_size"], weights["symmetric"], weights["type"]) == (4, 32, True, "int")


def test_it_is_as_large_as_the_published_files_without_their_vision() -> None:
    # MoonViT's 400 million parameters are the difference, and what files hold beside the weights.
    assert total_bytes(shape_of(config(FULL))) == pytest.approx(K25_BYTES, rel=0.002)


def test_only_the_routed_experts_are_quantised() -> None:
    found = shape_of(config(FULL)).quantisation
    assert found is not None and found.bits == 4.5
    names = {"mlp.experts.0.up_proj": True, "mlp.experts": True, "mlp.shared_experts.up_proj": False, "self_attn.kv_b_proj": False}
    names |= {"mlp.gate_up_proj": False, "mlp.down_proj": False}
    assert {name: found.covers(f"model.layers.3.{name}") for name in names} == names
    assert not found.covers("lm_head")


def test_the_folder_loads_as_a_model_with_a_tokenizer_of_its_own_vocabulary(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    write(tmp_path / "shape", FULL)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "shape")
    assert len(tokenizer) == 163840
    assert tokenizer.model_max_length == 262144
    assert tokenizer.decode([49152, 163839]) == " <49152> <163839>"
    text = "Why is the sky blue? <49152> 什么"
    ids = tokenizer.encode(text)
    assert max(ids) < 49152 and tokenizer.decode(ids) == text
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True)
    assert str(prompt).endswith("<think>")
    assert inspect(tmp_path / "shape").complete and read_shape(tmp_path / "shape").layers == 61


def test_vllm_takes_the_configuration(tmp_path: Path) -> None:
    """vLLM's own reading of it, in a process of its own."""
    for name, shape in (("full", FULL), ("tiny", TINY)):
        write(tmp_path / name, shape)
    told = subprocess.run(
        [sys.executable, "-c", LOADER, str(tmp_path / "full"), str(tmp_path / "tiny")],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    found = [json.loads(line.removeprefix("found ")) for line in told.stdout.splitlines() if line.startswith("found ")]
    assert found == [
        [["DeepseekV3ForCausalLM"], 262144, 163840, True, "compressed-tensors"],
        [["DeepseekV3ForCausalLM"], 8192, 49152, True, None],
    ], told.stderr[-2000:]


def test_writing_again_replaces_a_shape_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "shape"
    write(folder, TINY)
    write(folder, replace(TINY, layers=2))
    assert json.loads((folder / NOTE).read_text())["layers"] == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    (tmp_path / "file").write_text("")
    for taken in ("mine", "file"):
        with pytest.raises(Failure) as refused:
            write(tmp_path / taken, TINY)
        assert refused.value.code == "shape.folder_taken"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine", "shape"]


@pytest.mark.parametrize(
    ("shape", "code", "flag"),
    [
        (replace(TINY, layers=0), "shape.at_least", "--layers"),
        (replace(TINY, vocabulary=1000), "shape.at_least", "--vocabulary"),
        (replace(TINY, active=17), "shape.at_most", "--active"),
        (replace(TINY, dense=4), "shape.at_most", "--dense"),
        (replace(TINY, hidden=2**30), "shape.at_most", "--hidden"),
        (replace(FULL, expert_inner=100), "shape.multiple", "--expert-inner"),
        (replace(TINY, bits=8), "shape.bits", None),
    ],
)
def test_what_makes_no_model_is_refused(shape: KimiShape, code: str, flag: str | None) -> None:
    with pytest.raises(Failure) as refused:
        check(shape)
    assert (refused.value.code, refused.value.params.get("flag")) == (code, flag)


def test_as_many_layers_as_fit() -> None:
    layout = Layout(tensor=1, context=8192)
    most = most_layers(FULL, H200, layout)
    assert 8 < most < 16
    assert plan(shape_of(config(replace(FULL, layers=most))), layout, H200).fits
    assert not plan(shape_of(config(replace(FULL, layers=most + 1))), layout, H200).fits
    eight = machine("8xh200")
    assert eight is not None and most_layers(FULL, eight, Layout(tensor=8)) == 61
    assert most_layers(FULL, Machine("small", "", 1, 2**30), layout) == 0
