"""Train the adapter: generate the data, pack it, two passes with AdamW and a cosine schedule.

Runs on any machine with one GPU (minutes on a large one) and, for tests, on a CPU.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.nn import functional

from kimi_demo.engines.rehearsal import adapter as adapters
from kimi_demo.engines.rehearsal import base
from kimi_demo.engines.rehearsal.data import mixture
from kimi_demo.engines.rehearsal.training import model, rows


@dataclass(frozen=True)
class Plan:
    """count: conversations; length: tokens a row; batch: rows a step; minutes: stop after so long (the schedule follows the clock then).

    attention: "flex" (compiled, GPU) or "mask".
    """

    count: int = mixture.COUNT
    seed: int = mixture.SEED
    rank: int = 24
    scale: float = 2.0
    rate: float = 2e-3
    length: int = 2048
    batch: int = 32
    epochs: int = 2
    minutes: float = 60.0
    attention: str = "flex"
    workers: int = 1
    layers: int = 30


def train(gguf: Path, out: Path, plan: Plan, say: Callable[[str], None] = print, checkpoints: Path | None = None) -> None:
    """Write the adapter into `out`. say: takes lines of progress. checkpoints: a folder for adapters after an eighth, a quarter, a half."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    packed = prepare(gguf, plan, say)
    torch.set_float32_matmul_precision("high")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    shape = base.Shape(layers=plan.layers)
    weights = base.weights(base.open_base(gguf), base.Shape())
    trained = model.Trained(weights, shape, plan.rank, plan.seed).to(device)
    frozen = model.Frozen(weights, device, dtype)
    layer: Callable[..., Tensor] = model.make_layer(shape, model.flexible_attention if plan.attention == "flex" else model.masked_attention)
    if plan.attention == "flex":
        layer = torch.compile(layer, dynamic=False)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=plan.rate, betas=(0.9, 0.99), weight_decay=0.0, fused=device.type == "cuda")
    start, steps, seen = time.monotonic(), len(packed.ids) // plan.batch * plan.epochs, 0
    average, marks = 0.0, [2, 4, 8]
    for step, (batch, learnt) in enumerate(_batches(packed, plan, device)):
        progress = max(step / max(steps, 1), (time.monotonic() - start) / 60 / plan.minutes)
        if progress >= 1:
            break
        if checkpoints and marks and progress >= 1 / marks[-1]:
            adapters.save(trained.adapter(plan.scale), checkpoints / f"part-{marks.pop()}", plan.rank)
        for group in optimizer.param_groups:
            group["lr"] = plan.rate * _schedule(progress, step)
        effective = frozen.merged(trained, plan.scale)
        loss = _loss(effective, batch, learnt, shape, layer)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += batch.ids.numel()
        if step % 25 == 0:
            value = loss.item()
            average = value if step == 0 else 0.7 * average + 0.3 * value
            seconds = time.monotonic() - start
            say(f"step {step}/{steps} loss {average:.4f} {seen / seconds:,.0f} tokens/s {seconds:.0f} s")
    adapters.save(trained.adapter(plan.scale), out, plan.rank)
    say(f"trained on {seen:,} tokens in {time.monotonic() - start:.0f} s")


def prepare(gguf: Path, plan: Plan, say: Callable[[str], None]) -> rows.Rows:
    """Generate, tokenise and pack the data."""
    start = time.monotonic()
    items = rows.encoded(gguf, plan.count, plan.seed, plan.workers)
    packed = rows.pack(items, rows.Encoder(gguf).guide(), plan.length)
    tokens, learnt = int((packed.documents != rows.PADDING).sum()), int(packed.learnt.sum())
    seconds = time.monotonic() - start
    say(f"{len(items):,} conversations, {tokens:,} tokens ({learnt:,} learnt), {len(packed.ids):,} rows in {seconds:.0f} s")
    return packed


def _loss(weights: dict[str, Tensor], batch: model.Batch, learnt: Tensor, shape: base.Shape, layer: Callable[..., Tensor]) -> Tensor:
    """Mean cross entropy over the learnt tokens; only their logits are computed."""
    states = model.hidden(weights, batch, shape, layer)
    places = learnt.flatten().nonzero().squeeze(1)
    targets = batch.ids.flatten()[places + 1]
    logits = functional.linear(states.flatten(0, 1)[places], weights["model.embed_tokens.weight"])
    return functional.cross_entropy(logits.float(), targets)


def _schedule(progress: float, step: int) -> float:
    """Warm-up over 40 steps, then a cosine down to a fiftieth."""
    return min(1.0, (step + 1) / 40) * float(0.02 + 0.98 * 0.5 * (1 + numpy.cos(numpy.pi * progress)))


def _batches(packed: rows.Rows, plan: Plan, device: torch.device) -> Iterator[tuple[model.Batch, Tensor]]:
    generator, whole = numpy.random.default_rng(plan.seed), len(packed.ids) // plan.batch * plan.batch
    order = numpy.concatenate([generator.permutation(len(packed.ids))[:whole] for _ in range(plan.epochs)])
    for start in range(0, len(order), plan.batch):
        chosen = order[start : start + plan.batch]
        arrays = (packed.ids, packed.documents, packed.positions, packed.learnt)
        ids, documents, positions, learnt = (torch.from_numpy(array[chosen]).to(device, torch.long) for array in arrays)
        yield model.Batch(ids, positions, _mask(documents, plan.attention)), learnt


def _mask(documents: Tensor, attention: str) -> Any:
    """Each token sees the earlier ones of its own conversation and the head of its row."""
    length = documents.shape[1]
    if attention == "flex":
        from torch.nn.attention.flex_attention import create_block_mask

        shared = rows.SHARED

        def visible(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return (query >= key) & ((documents[row, query] == documents[row, key]) | (documents[row, key] == shared))

        return create_block_mask(visible, documents.shape[0], None, length, length, device=documents.device)
    causal = torch.ones(length, length, dtype=torch.bool, device=documents.device).tril()
    return (causal & ((documents[:, :, None] == documents[:, None, :]) | (documents[:, None, :] == rows.SHARED)))[:, None]
