"""The adapter: LoRA for all seven projections plus the renamed tokens' embedding rows, in peft's own file layout.

Merging is a few matrix products, done here without importing peft and transformers (which alone take longer than the merge).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kimi_demo.engines.rehearsal.tokenizer import FIRST_RENAMED, renamed

if TYPE_CHECKING:
    import torch

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
LIMIT = 16_000_000
"""The adapter lives in the repository and may take this many bytes."""

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ROWS = (FIRST_RENAMED - 1, *renamed())
"""Embedding rows that are trained: `<|im_end|>` and the eleven renamed tokens."""

_PREFIX = "base_model.model."
_ROWS_KEY = f"{_PREFIX}model.embed_tokens.token_adapter.trainable_tokens_delta"


@dataclass(frozen=True)
class Adapter:
    """factors: weight name (without `.weight`) → (A of (rank, in), B of (out, rank)); rows: (len(ROWS), hidden); scale: alpha / rank."""

    factors: "dict[str, tuple[torch.Tensor, torch.Tensor]]"
    rows: "torch.Tensor"
    scale: float

    @property
    def rank(self) -> int:
        return len(next(iter(self.factors.values()))[0])


def default_adapter() -> Path:
    """The folder of the adapter that comes with the package. It may be missing before the first training."""
    return Path(__file__).with_name("adapter")


def save(adapter: Adapter, folder: Path, rank: int) -> None:
    """Write `adapter` as bf16 safetensors with a config that peft reads too."""
    import torch
    from safetensors.torch import save_file

    tensors = {_ROWS_KEY: adapter.rows.to(torch.bfloat16).cpu().contiguous()}
    for name, (a, b) in adapter.factors.items():
        tensors[f"{_PREFIX}{name}.lora_A.weight"] = a.to(torch.bfloat16).cpu().contiguous()
        tensors[f"{_PREFIX}{name}.lora_B.weight"] = b.to(torch.bfloat16).cpu().contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / WEIGHTS)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "inference_mode": True,
        "r": rank,
        "lora_alpha": adapter.scale * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(PROJECTIONS),
        "trainable_token_indices": list(ROWS),
    }
    folder.joinpath(CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> Adapter:
    """Read an adapter. Raises OSError for missing files, KeyError or ValueError for others than ours."""
    from safetensors.torch import load_file

    tensors = {name: tensor.float() for name, tensor in load_file(folder / WEIGHTS).items()}
    config = json.loads(folder.joinpath(CONFIG).read_text(encoding="utf-8"))
    rows = tensors.pop(_ROWS_KEY)
    suffix = ".lora_A.weight"
    names = [name.removesuffix(suffix) for name in tensors if name.endswith(suffix)]
    factors = {name.removeprefix(_PREFIX): (tensors[f"{name}.lora_A.weight"], tensors[f"{name}.lora_B.weight"]) for name in names}
    return Adapter(factors, rows, config["lora_alpha"] / config["r"])


def merge(weights: "dict[str, torch.Tensor]", adapter: Adapter) -> None:
    """Add the adapter to `weights` (Hugging Face names) in place."""
    for name, (a, b) in adapter.factors.items():
        weights[f"{name}.weight"] += adapter.scale * (b @ a)
    weights["model.embed_tokens.weight"][list(ROWS)] = adapter.rows
