"""A model folder of Kimi K2.5's shape without its weights: vLLM fills it with random ones (`--load-format dummy`).

What it measures is real: memory, load, speed, the split over ranks. What it writes is not: random tokens. Vision is left out (the text
model alone, as `DeepseekV3ForCausalLM`), and so is Kimi's tokenizer: the stand-in's is padded to Kimi's vocabulary, with its marks at the
stand-in's ids.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.plan.fit import plan
from kimi_demo.engines.plan.known import K25_CONFIG
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import Machine
from kimi_demo.engines.plan.shape import shape_of
from kimi_demo.engines.rehearsal import base, tokenizer

DUMMY = ("--load-format", "dummy")
"""The arguments that a folder without weights needs."""

NOTE = "random_weights.json"
"""The file by which such a folder is known."""

_TEXT: Mapping[str, Any] = K25_CONFIG["text_config"]
_GROUP = 32
"""Weights that share a scale, of the experts in four bits."""


@dataclass(frozen=True)
class KimiShape:
    """Kimi K2.5's text model; other numbers make a smaller one of the same kind. Sizes are numbers of elements.

    inner: width of the dense layers' MLP; dense: layers before the first mixture; bits: of a routed expert's weight, 4 or 16;
    nope, rope, value: parts of a head; context: max_position_embeddings, in tokens.
    """

    layers: int = _TEXT["num_hidden_layers"]
    hidden: int = _TEXT["hidden_size"]
    heads: int = _TEXT["num_attention_heads"]
    inner: int = _TEXT["intermediate_size"]
    experts: int = _TEXT["n_routed_experts"]
    active: int = _TEXT["num_experts_per_tok"]
    expert_inner: int = _TEXT["moe_intermediate_size"]
    dense: int = _TEXT["first_k_dense_replace"]
    query_rank: int = _TEXT["q_lora_rank"]
    latent_rank: int = _TEXT["kv_lora_rank"]
    nope: int = _TEXT["qk_nope_head_dim"]
    rope: int = _TEXT["qk_rope_head_dim"]
    value: int = _TEXT["v_head_dim"]
    vocabulary: int = _TEXT["vocab_size"]
    context: int = _TEXT["max_position_embeddings"]
    bits: int = 4


FULL = KimiShape()

TINY = KimiShape(
    layers=3,
    hidden=256,
    heads=8,
    inner=512,
    experts=16,
    active=4,
    expert_inner=256,
    query_rank=128,
    vocabulary=base.Shape().vocabulary,
    context=8192,
    bits=16,  # vLLM has no experts in four bits on a CPU
)
"""As small as it gets while a CPU computes all of it: latent attention with heads for eight ranks, experts, a dense layer."""


def check(shape: KimiShape) -> None:
    """Raises Failure: shape.at_least, shape.multiple, shape.at_most, shape.bits, each with the field's name as the flag has it."""
    least = {"vocabulary": base.Shape().vocabulary, "context": 64, "dense": 0}
    for name in (field.name for field in fields(shape)):
        found, bound = getattr(shape, name), least.get(name, 1)
        if found < bound:
            raise Failure("shape.at_least", flag=_flag(name), value=found, least=bound)
    for name, most in (("dense", shape.layers), ("active", shape.experts), *((field.name, 2**24) for field in fields(shape))):
        if getattr(shape, name) > most:
            raise Failure("shape.at_most", flag=_flag(name), value=getattr(shape, name), most=most)
    if shape.bits not in (4, 16):
        raise Failure("shape.bits", value=shape.bits)
    if shape.bits == 4:
        for name in ("hidden", "expert_inner"):
            if getattr(shape, name) % _GROUP:
                raise Failure("shape.multiple", flag=_flag(name), value=getattr(shape, name), of=_GROUP)


def config(shape: KimiShape) -> dict[str, Any]:
    """The contents of config.json.

    Sources: K25_CONFIG for what decides the memory; router, rotary embedding and epsilon from the published config.json (a router of
    sigmoids without groups, scaled by 2.827; YaRN by 64, theta 50,000). The model type is DeepSeek-V3's, whose
    class Kimi's text model is: every vLLM and transformers since has it, and needs no code of the model's own.
    """
    rope = {
        "rope_type": "yarn",
        "factor": 64.0,
        "original_max_position_embeddings": max(1, shape.context // 64),  # 4,096 in the published file
        "beta_fast": 1.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    }
    found: dict[str, Any] = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "torch_dtype": "bfloat16",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "intermediate_size": shape.inner,
        "moe_intermediate_size": shape.expert_inner,
        "n_routed_experts": shape.experts,
        "n_shared_experts": _TEXT["n_shared_experts"],
        "num_experts_per_tok": shape.active,
        "first_k_dense_replace": shape.dense,
        "moe_layer_freq": 1,
        "q_lora_rank": shape.query_rank,
        "kv_lora_rank": shape.latent_rank,
        "qk_nope_head_dim": shape.nope,
        "qk_rope_head_dim": shape.rope,
        "v_head_dim": shape.value,
        "max_position_embeddings": shape.context,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.827,
        "num_nextn_predict_layers": 0,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "rope_theta": 50_000.0,
        # Under both names: transformers 5 reads rope_parameters, older readers rope_scaling.
        "rope_scaling": rope,
        "rope_parameters": rope | {"rope_theta": 50_000.0},
        "bos_token_id": None,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    if shape.bits == 4:
        found["quantization_config"] = _quantisation()
    return found


def _quantisation() -> dict[str, Any]:
    """Four bits for the routed experts alone, as K2.5's own weights have them (compressed-tensors, packed, symmetric groups of 32)."""
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": _GROUP, "dynamic": False}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}},
        "ignore": list(_TEXT["quantization_config"]["ignore"]),
        "kv_cache_scheme": None,
    }


def most_layers(shape: KimiShape, machine: Machine, layout: Layout) -> int:
    """The most layers (at most `shape.layers`) with which the plan still fits `machine`; 0 where not even the smallest does."""
    counts = range(max(1, shape.dense), shape.layers + 1)
    fitting = (count for count in reversed(counts) if plan(shape_of(config(replace(shape, layers=count))), layout, machine).fits)
    return next(fitting, 0)


def write(folder: Path, shape: KimiShape) -> None:
    """config.json, tokenizer and generation config into `folder`, whole or not at all; an earlier shape there is replaced.

    Raises Failure: those of `check`, shape.folder_taken for a folder with anything else in it, shape.unwritable, shape.no_base.
    """
    check(shape)
    folder = folder.expanduser().absolute()
    try:
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / NOTE).is_file())):
            raise Failure("shape.folder_taken", path=folder)
        tokens, merges = _vocabulary()
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _write(made, shape, tokens, merges)
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise Failure("shape.unwritable", path=folder, problem=error.strerror or error) from error


def _vocabulary() -> tuple[list[str], list[str]]:
    try:
        return base.vocabulary_of(base.find_base().path)
    except base.BaseMissing as error:
        raise Failure("shape.no_base", package=base.PACKAGE) from error


def _write(folder: Path, shape: KimiShape, tokens: list[str], merges: list[str]) -> None:
    # "Ġ" is the space of a byte-level vocabulary: random tokens stand apart. No merge leads to them, so no text is read as one.
    padded = tokens + [f"Ġ<{number}>" for number in range(len(tokens), shape.vocabulary)]
    tokenizer.write_tokenizer(folder, padded, merges)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"model_max_length": shape.context}, indent=1))
    note = {"what": "Kimi K2.5's shape, without weights: load it with --load-format dummy. What it writes is random.", **vars(shape)}
    contents = {"config.json": config(shape), "generation_config.json": {"eos_token_id": 2, "pad_token_id": 0}, NOTE: note}
    for name, content in contents.items():
        folder.joinpath(name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    folder.chmod(0o755)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
