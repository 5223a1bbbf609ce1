"""The KV cache: bytes a token on each GPU, and how many tokens and requests a given room holds."""

from dataclasses import dataclass
from math import ceil

from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.shape import ModelShape


@dataclass(frozen=True)
class CacheRoom:
    """tokens: as vLLM's log reports "KV cache size"; concurrency: requests of the full context at once, as it reports, too."""

    tokens: int
    concurrency: float


def bytes_per_token(shape: ModelShape, layout: Layout) -> int:
    """Bytes that one token of one request takes on each GPU that holds it.

    MLA:   (kv_lora_rank + qk_rope_head_dim) × bytes × layers, the same on every tensor rank, since there is one latent for all heads
           (DeepSeek-V2, section 2.1.3; vLLM 0.32 `MLAAttentionSpec`: num_kv_heads=1, head_size_v=0). Kimi K2.5: 576 × 2 × 61 = 70,272.
    other: 2 × head_dim × max(1, ⌈kv heads / tensor ranks⌉) × bytes × layers (`AttentionSpec.state_content_size_bytes`).
    Layers are those of the largest pipeline stage; fp8 takes one byte instead of two.
    """
    size = 1 if layout.kv_dtype.startswith("fp8") else 2 if layout.kv_dtype != "auto" else shape.dtype_bytes
    layers = ceil(shape.layers / layout.pipeline)
    if shape.latent is not None:
        return (shape.latent.kv_rank + shape.latent.rope) * size * layers
    heads = max(1, ceil(shape.kv_heads / layout.tensor))
    return 2 * shape.head_dim * heads * size * layers


def average_bytes_per_token(shape: ModelShape, layout: Layout) -> float:
    """As `bytes_per_token`, where decode context parallelism spreads the tokens of a request over ranks: what one token costs each GPU."""
    return bytes_per_token(shape, layout) / layout.decode_context


def room(shape: ModelShape, layout: Layout, bytes_left: int) -> CacheRoom:
    """What `bytes_left` on each GPU hold, in whole blocks, as vLLM counts (v1/core/kv_cache_utils.py `get_kv_cache_capacity`):

    blocks = ⌊bytes / (block × bytes a token)⌋; a request of the full context takes ⌈context / decode context ranks / block⌉ of them;
    concurrency = blocks / that; tokens = ⌊concurrency × context⌋. With data parallelism each replica has this room.
    """
    blocks = max(0, bytes_left) // (bytes_per_token(shape, layout) * layout.block)
    a_request = ceil(ceil(layout.context / layout.decode_context) / layout.block)
    concurrency = blocks / a_request
    return CacheRoom(int(concurrency * layout.context), concurrency)


def curve(shape: ModelShape, layout: Layout, bytes_left: int) -> list[tuple[int, float]]:
    """(context length, requests of that length at once, all replicas together), lengths doubling from 1,024 to the model's own."""
    most = shape.context or max(layout.context, 1024)
    lengths = [length for power in range(10, 24) if (length := 2**power) < most] + [most]
    per_token = average_bytes_per_token(shape, layout)
    return [(length, layout.data * max(0, bytes_left) / (per_token * length)) for length in lengths]
