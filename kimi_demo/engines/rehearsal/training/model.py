"""The base as a plain function of its weights, with LoRA merged into every matrix at each step.

Merging first costs one small product a matrix and leaves the forward pass at the base's own speed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from kimi_demo.engines.rehearsal.adapter import PROJECTIONS, ROWS, Adapter
from kimi_demo.engines.rehearsal.base import Shape


@dataclass(frozen=True)
class Batch:
    """ids, positions, documents: (rows, length) int64; mask: what attention takes (a BlockMask or a boolean (rows, 1, length, length))."""

    ids: Tensor
    positions: Tensor
    mask: Any


class Trained(nn.Module):
    """The trained parameters, float32: LoRA factors by weight name (dots as underscores) and the embedding rows ROWS."""

    def __init__(self, weights: Mapping[str, Tensor], shape: Shape, rank: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.names = [f"model.layers.{layer}.{_part(name)}.{name}" for layer in range(shape.layers) for name in PROJECTIONS]
        self.downs = nn.ParameterList()
        self.ups = nn.ParameterList()
        for name in self.names:
            rows, columns = weights[f"{name}.weight"].shape
            self.downs.append(nn.Parameter((torch.rand(rank, columns, generator=generator) * 2 - 1) * (3 / columns) ** 0.5))
            self.ups.append(nn.Parameter(torch.zeros(rows, rank)))
        self.rows = nn.Parameter(weights["model.embed_tokens.weight"][list(ROWS)].clone())

    def start_from(self, adapter: Adapter) -> None:
        """Take over a trained adapter's values; it must have the same rank."""
        with torch.no_grad():
            for name, down, up in zip(self.names, self.downs, self.ups, strict=True):
                a, b = adapter.factors[name]
                down.copy_(a)
                up.copy_(b)
            self.rows.copy_(adapter.rows)

    def adapter(self, scale: float) -> Adapter:
        factors = {name: (down.detach(), up.detach()) for name, down, up in zip(self.names, self.downs, self.ups, strict=True)}
        return Adapter(factors, self.rows.detach(), scale)


class Frozen:
    """The base's weights on the device; `merged` adds the trained part."""

    def __init__(self, weights: Mapping[str, Tensor], device: torch.device, dtype: torch.dtype) -> None:
        self._weights = {name: tensor.to(device) for name, tensor in weights.items()}
        self._dtype = dtype
        self._rows = torch.tensor(ROWS, device=device)

    def merged(self, trained: Trained, scale: float) -> dict[str, Tensor]:
        """Effective weights by Hugging Face name, in the compute type; gradients flow into `trained`."""
        merged = {name: tensor.to(self._dtype) for name, tensor in self._weights.items() if tensor.dim() == 1}
        for name, down, up in zip(trained.names, trained.downs, trained.ups, strict=True):
            merged[f"{name}.weight"] = (self._weights[f"{name}.weight"] + scale * (up @ down)).to(self._dtype)
        embedding = self._weights["model.embed_tokens.weight"]
        merged["model.embed_tokens.weight"] = embedding.index_copy(0, self._rows, trained.rows).to(self._dtype)
        return merged


Attend = Callable[[Tensor, Tensor, Tensor, Any], Tensor]


def hidden(weights: Mapping[str, Tensor], batch: Batch, shape: Shape, layer: Callable[..., Tensor]) -> Tensor:
    """(rows, length, hidden) after the last norm."""
    x = functional.embedding(batch.ids, weights["model.embed_tokens.weight"])
    cosine, sine = rotary(batch.positions, shape, x.dtype)
    for index in range(shape.layers):
        x = layer(x, cosine, sine, batch.mask, *layer_weights(weights, index))
    return functional.rms_norm(x, (shape.hidden,), weights["model.norm.weight"], shape.epsilon)


def layer_weights(weights: Mapping[str, Tensor], index: int) -> list[Tensor]:
    """One layer's weights in the order `make_layer`'s function takes them."""
    names = ("input_layernorm", "post_attention_layernorm", *(f"{_part(name)}.{name}" for name in PROJECTIONS))
    return [weights[f"model.layers.{index}.{name}.weight"] for name in names]


def make_layer(shape: Shape, attend: Attend) -> Callable[..., Tensor]:
    """One Llama block as a function of its input and weights, so that it is compiled once and used for all layers."""

    def layer(x: Tensor, cosine: Tensor, sine: Tensor, mask: Any, *weights: Tensor) -> Tensor:
        norm1, norm2, q, k, v, o, gate, up, down = weights
        rows, length, _ = x.shape
        y = functional.rms_norm(x, (shape.hidden,), norm1, shape.epsilon)
        query = functional.linear(y, q).view(rows, length, shape.heads, shape.head).transpose(1, 2)
        key = functional.linear(y, k).view(rows, length, shape.key_value_heads, shape.head).transpose(1, 2)
        value = functional.linear(y, v).view(rows, length, shape.key_value_heads, shape.head).transpose(1, 2)
        query, key = rotated(query, cosine, sine), rotated(key, cosine, sine)
        mixed = attend(query, key, value, mask).transpose(1, 2).reshape(rows, length, shape.hidden)
        x = x + functional.linear(mixed, o)
        y = functional.rms_norm(x, (shape.hidden,), norm2, shape.epsilon)
        return x + functional.linear(functional.silu(functional.linear(y, gate)) * functional.linear(y, up), down)

    return layer


def rotary(positions: Tensor, shape: Shape, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of (rows, 1, length, head)."""
    steps = torch.arange(0, shape.head, 2, device=positions.device, dtype=torch.float32)
    angles = positions[:, None, :, None].float() / shape.rope_theta ** (steps / shape.head)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    left, right = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-right, left), dim=-1) * sine


def masked_attention(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Tensor:
    """Attention with a boolean mask, for any device."""
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)


def flexible_attention(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Tensor:
    """Attention with a block mask, fast when compiled on a GPU."""
    from torch.nn.attention.flex_attention import flex_attention

    result: Any = flex_attention(query, key, value, block_mask=mask, enable_gqa=True)
    return torch.as_tensor(result)


def _part(projection: str) -> str:
    return "mlp" if projection in ("gate_proj", "up_proj", "down_proj") else "self_attn"
