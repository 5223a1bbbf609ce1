"""Train the adapter: generate the data, pack it, then AdamW with a warm-up and a cosine.

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
from kimi_demo.engines.rehearsal.data.mixture import Stage
from kimi_demo.engines.rehearsal.training import model, rows

_SAVING = 3.0
"""Seconds kept back for writing the adapter."""


@dataclass(frozen=True)
class Plan:
    """stage: the data; start: folder of an adapter to go on from (None: from the base); length: tokens a row; batch: rows a step.

    minutes: the adapter is written so long after the beginning at the latest, data and compiling included; the schedule then follows
    the clock. floor: part of the peak rate that is left at the end. attention: "flex" (compiled, GPU) or "mask".
    """

    stage: Stage
    start: Path | None = None
    rank: int = 24
    scale: float = 2.0
    rate: float = 2e-3
    floor: float = 0.02
    length: int = 2048
    batch: int = 32
    epochs: int = 2
    minutes: float = 60.0
    attention: str = "flex"
    workers: int = 1
    layers: int = 30


def later_plan(start: Path, number: int = 2) -> Plan:
    """Going on from the adapter in `start` with stage 2, 3 or 4 at less than half of the first one's rate, down to nothing."""
    rate, epochs = {2: (7e-4, 2), 3: (8e-4, 2), 4: (5e-4, 1)}[number]
    return Plan(mixture.stages()[number - 1], start, rate=rate, epochs=epochs, floor=0.0)


def train(gguf: Path, out: Path, plan: Plan, say: Callable[[str], None] = print, checkpoints: Path | None = None) -> None:
    """Write the adapter into `out`. say: takes lines of progress. checkpoints: a folder for adapters after an eighth, a quarter, a half.

    Raises OSError if plan.start cannot be read, ValueError if it does not fit the plan.
    """
    begun = time.monotonic()
    earlier = adapters.load(plan.start) if plan.start else None
    if earlier and earlier.rank != plan.rank:
        raise ValueError(f"the adapter to go on from has rank {earlier.rank}, not {plan.rank}")
    waiting = rows.encoding(gguf, plan.stage, plan.workers)  # forks, so before anything touches the GPU
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    shape = base.Shape(layers=plan.layers)
    weights = base.weights(base.open_base(gguf), shape)
    trained = model.Trained(weights, shape, plan.rank, plan.stage.seed)
    if earlier:
        trained.start_from(earlier)
    trained = trained.to(device)
    frozen = model.Frozen(weights, device, dtype)
    layer: Callable[..., Tensor] = model.make_layer(shape, model.flexible_attention if plan.attention == "flex" else model.masked_attention)
    if plan.attention == "flex":
        layer = torch.compile(layer, dynamic=False)
        batch, learnt = _practice(plan, device)  # compiles while the data is being made
        _loss(frozen.merged(trained, plan.scale), batch, learnt, shape, layer).backward()  # type: ignore[no-untyped-call]
        trained.zero_grad(set_to_none=True)
        say(f"compiled after {time.monotonic() - begun:.0f} s")
    packed = _packed(gguf, waiting(), plan, say)
    say(f"data after {time.monotonic() - begun:.0f} s")
    optimizer = torch.optim.AdamW(trained.parameters(), lr=plan.rate, betas=(0.9, 0.99), weight_decay=0.0, fused=device.type == "cuda")
    start, steps, seen = time.monotonic(), len(packed.ids) // plan.batch * plan.epochs, 0
    left = max(begun + plan.minutes * 60 - _SAVING - start, 1.0)
    average, marks = 0.0, [2, 4, 8]
    for step, (batch, learnt) in enumerate(_batches(packed, plan, device)):
        progress = max(step / max(steps, 1), (time.monotonic() - start) / left)
        if step and progress >= 1:
            break
        if checkpoints and marks and progress >= 1 / marks[-1]:
            adapters.save(trained.adapter(plan.scale), checkpoints / f"part-{marks.pop()}", plan.rank)
        for group in optimizer.param_groups:
            group["lr"] = plan.rate * schedule(progress, step, plan.floor)
        effective = frozen.merged(trained, plan.scale)
        loss = _loss(effective, batch, learnt, shape, layer)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += batch.ids.numel()
        if step % 10 == 0:  # the value waits for the GPU, so that the clock above is never far ahead of it
            value = loss.item()
            average = value if step == 0 else 0.8 * average + 0.2 * value
            seconds = time.monotonic() - start
            say(f"step {step}/{steps} loss {average:.4f} {seen / seconds:,.0f} tokens/s {seconds:.0f} s")
    adapters.save(trained.adapter(plan.scale), out, plan.rank)
    say(f"trained on {seen:,} tokens in {time.monotonic() - start:.0f} s, {time.monotonic() - begun:.0f} s in all")


def schedule(progress: float, step: int, floor: float) -> float:
    """Part of the peak rate: warm-up over 40 steps, then a cosine down to `floor`. progress: 0 to 1."""
    return min(1.0, (step + 1) / 40) * float(floor + (1 - floor) * 0.5 * (1 + numpy.cos(numpy.pi * progress)))


def _packed(gguf: Path, items: list[rows.Encoded], plan: Plan, say: Callable[[str], None]) -> rows.Rows:
    packed = rows.pack(items, rows.Encoder(gguf).guide(), plan.length)
    tokens, learnt = int((packed.documents != rows.PADDING).sum()), int(packed.learnt.sum())
    say(f"{len(items):,} conversations, {tokens:,} tokens ({learnt:,} learnt), {len(packed.ids):,} rows")
    return packed


def _loss(weights: dict[str, Tensor], batch: model.Batch, learnt: Tensor, shape: base.Shape, layer: Callable[..., Tensor]) -> Tensor:
    """Mean cross entropy over the learnt tokens; only their logits are computed."""
    states = model.hidden(weights, batch, shape, layer)
    places = learnt.flatten().nonzero().squeeze(1)
    targets = batch.ids.flatten()[places + 1]
    logits = functional.linear(states.flatten(0, 1)[places], weights["model.embed_tokens.weight"])
    return functional.cross_entropy(logits.float(), targets)


def _practice(plan: Plan, device: torch.device) -> tuple[model.Batch, Tensor]:
    """A batch of the right shape and no content."""
    ids = torch.zeros(plan.batch, plan.length, dtype=torch.long, device=device)
    learnt = torch.zeros_like(ids)
    learnt[:, : plan.length // 4] = 1
    positions = torch.arange(plan.length, device=device).expand_as(ids).contiguous()
    return model.Batch(ids, positions, _mask(ids, plan.attention)), learnt


def _batches(packed: rows.Rows, plan: Plan, device: torch.device) -> Iterator[tuple[model.Batch, Tensor]]:
    generator, whole = numpy.random.default_rng(plan.stage.seed), len(packed.ids) // plan.batch * plan.batch
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
