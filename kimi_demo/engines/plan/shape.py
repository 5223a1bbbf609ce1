"""A model's shape, as far as its memory goes, read from its config.json."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.plan.quantisation import Quantisation, quantisation_of

_NESTED = ("text_config", "llm_config", "language_config")
"""Where a model that also sees keeps the configuration of its language model."""

_FOREIGN_STATE = ("linear_attention", "mamba", "recurrent", "conv")
"""Kinds of layers that keep a state instead of a cache that grows with every token."""

_DTYPE_BYTES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2}
_LARGEST_CONFIG = 16 * 2**20


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): what is cached is one latent vector and one rotary key a token.

    q_rank: None where queries are projected directly.
    """

    kv_rank: int
    rope: int
    nope: int
    value: int
    q_rank: int | None


@dataclass(frozen=True)
class Experts:
    """Mixture of experts. dense_layers: how many of the layers have an ordinary MLP instead."""

    routed: int
    shared: int
    active: int
    inner: int
    dense_layers: int


@dataclass(frozen=True)
class Vision:
    """The encoder for images: parameters of it and of what projects its output."""

    parameters: int


@dataclass(frozen=True)
class ModelShape:
    """What memory depends on. Sizes are numbers of elements.

    inner: of the ordinary MLP; gated: three matrices, not two; context: max_position_embeddings, None where unsaid;
    dtype_bytes: of what is not quantised, and of the KV cache; windowed: layers with a sliding window; sparse: a lightning indexer beside
    the attention (DeepSeek-V3.2); kimi: speaks Kimi's dialect, so that the server needs its parsers.
    """

    architecture: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    vocabulary: int
    context: int | None
    gated: bool = True
    tied: bool = False
    dtype_bytes: int = 2
    latent: Latent | None = None
    experts: Experts | None = None
    vision: Vision | None = None
    quantisation: Quantisation | None = None
    name_prefix: str = ""
    windowed: int = 0
    sparse: bool = False
    kimi: bool = False

    @property
    def attention(self) -> str:
        """MLA, MHA, MQA or GQA."""
        if self.latent is not None:
            return "MLA"
        return "MHA" if self.kv_heads == self.heads else "MQA" if self.kv_heads == 1 else "GQA"


def read_shape(folder: Path) -> ModelShape:
    """From `folder`/config.json. Raises Failure: plan.no_config, plan.config_unreadable, and those of `shape_of`."""
    path = folder / "config.json"
    try:
        with path.open("rb") as file:
            config = json.loads(file.read(_LARGEST_CONFIG))
    except FileNotFoundError:
        raise Failure("plan.no_config", path=folder) from None
    except OSError as error:
        raise Failure("plan.config_unreadable", path=path, problem=error.strerror or error) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too deep
        raise Failure("plan.config_unreadable", path=path, problem=error) from None
    if not isinstance(config, dict):
        raise Failure("plan.config_unreadable", path=path, problem="it is not a JSON object")
    return shape_of(config)


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """From the contents of a config.json. Field names: transformers' configuration classes of Llama, DeepSeek-V3, Kimi-K2.5, GPT-2.

    Raises Failure("plan.config_field", field=…, problem=…) for a field that is missing or makes no sense, and
    Failure("plan.unknown_kind", kind=…) for a model whose memory does not grow like attention's.
    """
    nested = next((name for name in _NESTED if isinstance(config.get(name), dict)), None)
    text: Mapping[str, Any] = config[nested] if nested else config
    _refuse_foreign(text)
    hidden, layers = _size(text, "hidden_size", "n_embd"), _size(text, "num_hidden_layers", "n_layer", "num_layers")
    heads = _size(text, "num_attention_heads", "n_head")
    latent = _latent(text)
    experts = _experts(text, layers)
    inner = _optional(text, "intermediate_size", "n_inner", "ffn_dim")
    if inner is None:
        inner = experts.inner if experts is not None and not experts.dense_layers else 4 * hidden  # GPT-2's own rule
    kinds = text.get("layer_types")
    return ModelShape(
        architecture=_first_text(config.get("architectures")) or str(text.get("model_type") or config.get("model_type") or "?"),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_optional(text, "num_key_value_heads", "num_kv_heads") or heads,
        head_dim=_optional(text, "head_dim") or max(1, hidden // heads),
        inner=inner,
        vocabulary=_size(text, "vocab_size"),
        context=_optional(text, "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"),
        gated=not str(text.get("model_type", "")).startswith(("gpt2", "opt", "gpt_neo", "bloom", "falcon")),
        tied=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
        dtype_bytes=_dtype_bytes(text, config),
        latent=latent,
        experts=experts,
        vision=_vision(config, hidden) if nested else None,
        quantisation=quantisation_of(config, text),
        name_prefix="language_model." if nested else "",
        windowed=sum(1 for kind in kinds if "sliding" in str(kind)) if isinstance(kinds, list) else 0,
        sparse=_optional(text, "index_topk") is not None,
        kimi=str(config.get("model_type", "")).startswith("kimi") or str(text.get("model_type", "")).startswith("kimi"),
    )


def _refuse_foreign(text: Mapping[str, Any]) -> None:
    kinds = text.get("layer_types")
    named = [str(kind) for kind in kinds] if isinstance(kinds, list) else []
    named += [str(kind) for kind in text.get("layers_block_type") or [] if kind]
    foreign = next((kind for kind in named if any(mark in kind for mark in _FOREIGN_STATE)), None)
    if foreign is None and isinstance(text.get("linear_attn_config"), dict):
        foreign = "linear_attention"
    if foreign is None and "compress_ratios" in text:
        foreign = "compressed attention"
    if foreign is None and ("ssm_state_size" in text or "mamba_d_state" in text or str(text.get("model_type", "")).startswith("mamba")):
        foreign = "mamba"
    if foreign is not None:
        raise Failure("plan.unknown_kind", kind=foreign)


def _latent(text: Mapping[str, Any]) -> Latent | None:
    rank = _optional(text, "kv_lora_rank")
    if rank is None:
        return None
    return Latent(
        kv_rank=rank,
        rope=_size(text, "qk_rope_head_dim"),
        nope=_size(text, "qk_nope_head_dim"),
        value=_size(text, "v_head_dim"),
        q_rank=_optional(text, "q_lora_rank"),
    )


def _experts(text: Mapping[str, Any], layers: int) -> Experts | None:
    routed = _optional(text, "n_routed_experts", "num_experts", "num_local_experts")
    if routed is None:
        return None
    dense = text.get("first_k_dense_replace", 0)
    step = _optional(text, "moe_layer_freq", "decoder_sparse_step") or 1
    first = dense if isinstance(dense, int) and 0 <= dense <= layers else 0
    sparse = len(range(first, layers, step))
    return Experts(
        routed=routed,
        shared=_optional(text, "n_shared_experts") or 0,
        active=_optional(text, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k") or 1,
        inner=_optional(text, "moe_intermediate_size") or _size(text, "intermediate_size"),
        dense_layers=layers - sparse,
    )


def _vision(config: Mapping[str, Any], text_hidden: int) -> Vision | None:
    """A transformer's parameters: per layer 4·h² of attention and 2·h·m of the MLP; and the projector from merged patches to the text."""
    found = config.get("vision_config")
    if not isinstance(found, dict):
        return None
    hidden = _optional(found, "vt_hidden_size", "hidden_size", "embed_dim")
    layers = _optional(found, "vt_num_hidden_layers", "num_hidden_layers", "depth")
    inner = _optional(found, "vt_intermediate_size", "intermediate_size")
    if hidden is None or layers is None:
        return None
    tower = layers * (4 * hidden**2 + 2 * hidden * (inner or 4 * hidden))
    merged = 4 * hidden  # 2 × 2 patches become one token
    return Vision(tower + merged**2 + merged * text_hidden)


def _dtype_bytes(text: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    for one in (text, config):
        for name in ("dtype", "torch_dtype"):
            if isinstance(one.get(name), str):
                # vLLM turns float32 into float16 or bfloat16 with --dtype auto (0.32, config/model.py `_resolve_auto_dtype`).
                return min(2, _DTYPE_BYTES.get(str(one[name]), 2))
    return 2


def _size(text: Mapping[str, Any], *names: str) -> int:
    value = _optional(text, *names)
    if value is None:
        raise Failure("plan.config_field", field=names[0], problem="it is missing")
    return value


def _optional(text: Mapping[str, Any], *names: str) -> int | None:
    """The first of these fields that is set. Zero and null mean: not there."""
    for name in names:
        value = text.get(name)
        if value is None or value == 0:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**40:
            raise Failure("plan.config_field", field=name, problem=f"{str(value)[:40]} is no size")
        return value
    return None


def _first_text(value: Any) -> str:
    return str(value[0]) if isinstance(value, list) and value and isinstance(value[0], str) else ""
