"""What a GPU must hold beside weights and cache: activations, CUDA graphs, and what the runtime takes. Estimates, and named as such."""

from dataclasses import dataclass

from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.shape import ModelShape

GIB = 2**30

GRAPHS = int(0.66 * GIB)
"""CUDA graphs: what the start-up log of Kimi K2.5 at tensor parallel size 8 reports (the deployment guide's screenshot)."""

RUNTIME = int(0.6 * GIB)
"""CUDA context and libraries of one process."""

COLLECTIVES = int(1.4 * GIB)
"""NCCL's buffers and vLLM's custom all-reduce, for each rank of several."""

API_OVERHEAD = int(0.8 * GIB)
"""The API server process on a CPU: 0.75 GB resident, as measured."""

_LARGE_GPU = 70 * GIB
_LATENT_WORKSPACE_TOKENS = 64 * 1024
"""Most tokens of context that MLA's prefill unpacks at a time (0.32, mla_attention.py `determine_chunked_prefill_workspace_size`)."""

_VISION_BYTES = int(1.5 * GIB)
"""Encoding the largest image that vLLM profiles (3,000 × 3,000 pixels, about 46,000 patches) with MoonViT. An estimate."""


@dataclass(frozen=True)
class Overhead:
    """Bytes on each GPU."""

    activations: int
    graphs: int
    runtime: int

    @property
    def total(self) -> int:
        return self.activations + self.graphs + self.runtime


def defaults(gpu_bytes: int) -> tuple[int, int]:
    """(max_num_seqs, max_num_batched_tokens) of the API server on a GPU of that size (0.32, engine/arg_utils.py `get_batch_defaults`)."""
    return (1024, 8192) if gpu_bytes >= _LARGE_GPU else (256, 2048)


def overhead(shape: ModelShape, layout: Layout, gpu_bytes: int) -> Overhead:
    """The peak of one step with as many tokens as a step may have, as vLLM profiles it before it sizes the cache.

    activations = tokens × bytes × (6 × hidden + 3 × widest MLP / tensor ranks)          residual, norms, attention, MLP
                + tokens × bytes × active experts × max(hidden, 2 × expert width / ranks)   fused MoE's intermediate cache
                + sequences × vocabulary × 20                                            logits in float32, sorted with their indices
                + 65,536 × heads / ranks × (nope + rope + value) × bytes                 MLA's unpacked context
    """
    usual_sequences, usual_tokens = defaults(gpu_bytes)
    tokens = layout.batched_tokens or usual_tokens
    sequences = min(layout.sequences or usual_sequences, tokens)
    size = shape.dtype_bytes
    need = tokens * size * (6 * shape.hidden + 3 * shape.inner // layout.tensor)
    if shape.experts is not None:
        need += tokens * size * shape.experts.active * max(shape.hidden, 2 * shape.experts.inner // layout.tensor)
    need += sequences * shape.vocabulary * 20
    if shape.latent is not None:
        per_head = shape.latent.nope + shape.latent.rope + shape.latent.value
        workspace = min(_LATENT_WORKSPACE_TOKENS, 8 * layout.context)
        need += workspace * max(1, shape.heads // layout.tensor) * per_head * size
    if shape.vision is not None and not layout.language_only:
        need += _VISION_BYTES
    return Overhead(need, GRAPHS, RUNTIME + (COLLECTIVES if layout.tensor * layout.pipeline > 1 else 0))
