"""How many bytes of weights each GPU holds: what tensor parallelism shards, and what every rank has in full.

What is sharded and what is replicated is vLLM's doing (0.32, model_executor/models/{llama,deepseek_v2,kimi_k25}.py):
`ColumnParallelLinear`, `RowParallelLinear`, `VocabParallelEmbedding` and the experts are split over the ranks; `ReplicatedLinear`, norms,
the router and MLA's down-projections (`fused_qkv_a_proj`, `disable_tp=True`) are not. Key-value heads fewer than ranks are repeated.
"""

from dataclasses import dataclass
from math import ceil

from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.shape import Experts, Latent, ModelShape

_NORMS_A_LAYER = 2


@dataclass(frozen=True)
class Part:
    """Weights that are treated alike. bytes: of all of them together, over all `layers`; copies: how often ranks repeat a shard.

    kind: layer (in every pipeline stage its own layers), experts, first (embeddings), last (the head), vision.
    """

    kind: str
    bytes: float
    sharded: bool
    copies: float = 1.0


def parts_of(shape: ModelShape, layout: Layout) -> list[Part]:
    """All weights of the model. Their sum, copies aside, is what its files hold (Kimi K2.5: 595 GB, as published)."""
    parts = [*_attention(shape, layout), *_mlp(shape)]
    if shape.experts is not None:
        parts += _moe(shape, shape.experts)
    parts.append(Part("layer", float(shape.layers * _NORMS_A_LAYER * shape.hidden * shape.dtype_bytes), sharded=False))
    table = float(shape.vocabulary * shape.hidden * shape.dtype_bytes)
    parts.append(Part("first", table, sharded=True))
    if not shape.tied:
        parts.append(Part("last", table, sharded=True))
    if shape.vision is not None and not layout.language_only:
        parts.append(Part("vision", float(shape.vision.parameters * shape.dtype_bytes), sharded=not layout.vision_replicated))
    return parts


def total_bytes(shape: ModelShape) -> int:
    """Bytes of all weights, as files hold them."""
    return round(sum(part.bytes for part in parts_of(shape, Layout())))


def bytes_per_gpu(shape: ModelShape, layout: Layout, on_disk: int | None = None) -> int:
    """Bytes of weights on the fullest GPU.

    on_disk: size of the model's files, where they are there: what they hold more than is counted here (or less) is spread in proportion.
    Per GPU: Σ part / (ranks that share it); with pipeline stages only the layers of the largest stage, ⌈layers / stages⌉, and the larger
    of embeddings and head; experts are shared by the ranks of all data parallel replicas, with or without expert parallelism
    (0.32, fused_moe/config.py `flatten_tp_across_dp_and_pcp`); MLA also keeps `W_UK` and `W_UV`, unpacked from kv_b_proj, beside it
    (mla_attention.py `process_weights_after_loading`).
    """
    stage = ceil(shape.layers / layout.pipeline) / shape.layers
    held, ends = 0.0, {"first": 0.0, "last": 0.0}
    for part in parts_of(shape, layout):
        if part.kind in ends:
            ends[part.kind] += part.bytes / layout.tensor
        elif part.kind == "vision":
            held += part.bytes / (layout.tensor if part.sharded else 1)
        elif part.kind == "experts":
            held += stage * part.bytes / (layout.tensor * layout.data)
        else:
            held += stage * part.bytes * part.copies / (layout.tensor if part.sharded else 1)
    held += max(ends.values()) if layout.pipeline > 1 else sum(ends.values())
    if on_disk is not None:
        counted = total_bytes(shape) if not layout.language_only else sum(part.bytes for part in parts_of(shape, layout))
        held *= on_disk / counted
    if shape.latent is not None:
        unpacked = shape.layers * shape.heads * shape.latent.kv_rank * (shape.latent.nope + shape.latent.value) * shape.dtype_bytes
        held += stage * unpacked / layout.tensor
    return round(held)


def _attention(shape: ModelShape, layout: Layout) -> list[Part]:
    if shape.latent is not None:
        return _latent_attention(shape, shape.latent)
    per_weight = _bytes_a_weight(shape, "self_attn.q_proj")
    queries = shape.layers * 2 * shape.hidden * shape.heads * shape.head_dim * per_weight  # q_proj and o_proj
    keys = shape.layers * 2 * shape.hidden * shape.kv_heads * shape.head_dim * per_weight  # k_proj and v_proj
    return [Part("layer", queries, True), Part("layer", keys, True, copies=max(1.0, layout.tensor / shape.kv_heads))]


def _latent_attention(shape: ModelShape, latent: Latent) -> list[Part]:
    """DeepSeek-V2, section 2.1: queries and the pair of keys and values each come out of a narrow vector (q_a, kv_a)."""
    per_weight = _bytes_a_weight(shape, "self_attn.kv_b_proj")
    query_width = latent.q_rank if latent.q_rank is not None else shape.hidden
    down = shape.hidden * (latent.kv_rank + latent.rope) + (shape.hidden * latent.q_rank if latent.q_rank is not None else 0)
    up = (
        query_width * shape.heads * (latent.nope + latent.rope)
        + latent.kv_rank * shape.heads * (latent.nope + latent.value)
        + shape.heads * latent.value * shape.hidden
    )
    return [Part("layer", shape.layers * down * per_weight, False), Part("layer", shape.layers * up * per_weight, True)]


def _mlp(shape: ModelShape) -> list[Part]:
    layers = shape.layers if shape.experts is None else shape.experts.dense_layers
    matrices = 3 if shape.gated else 2
    return [Part("layer", layers * matrices * shape.hidden * shape.inner * _bytes_a_weight(shape, "mlp.gate_proj", layer=0), True)]


def _moe(shape: ModelShape, experts: Experts) -> list[Part]:
    layers = shape.layers - experts.dense_layers
    one = 3 * shape.hidden * experts.inner
    return [
        Part("experts", layers * experts.routed * one * _bytes_a_weight(shape, "mlp.experts.0.gate_proj"), True),
        Part("layer", layers * experts.shared * one * _bytes_a_weight(shape, "mlp.shared_experts.gate_proj"), True),
        Part("layer", float(layers * experts.routed * shape.hidden * shape.dtype_bytes), False),  # the router
    ]


def _bytes_a_weight(shape: ModelShape, module: str, layer: int | None = None) -> float:
    number = shape.layers - 1 if layer is None else layer
    quantised = shape.quantisation
    if quantised is None or not quantised.covers(f"{shape.name_prefix}model.layers.{number}.{module}"):
        return float(shape.dtype_bytes)
    return quantised.bits / 8
