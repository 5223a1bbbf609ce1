"""How a model is spread over GPUs and what the server is told about memory: vLLM's arguments that a plan depends on."""

from dataclasses import dataclass
from typing import Literal

KvDtype = Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"]


@dataclass(frozen=True)
class Layout:
    """tensor, pipeline, data, decode_context: the parallel sizes (GPUs: tensor × pipeline × data; decode context splits the cache among
    tensor ranks). language_only: --language-model-only; vision_replicated: --mm-encoder-tp-mode data. sequences: --max-num-seqs,
    batched_tokens: --max-num-batched-tokens, both None for vLLM's own. block: tokens a cache block.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    decode_context: int = 1
    context: int = 8192
    utilization: float = 0.92
    kv_dtype: KvDtype = "auto"
    language_only: bool = False
    vision_replicated: bool = False
    sequences: int | None = None
    batched_tokens: int | None = None
    block: int = 16

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.data
