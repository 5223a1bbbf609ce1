"""Packing and the training step: what is packed together must train as if it stood alone."""

from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from kimi_demo.engines.rehearsal import base
from kimi_demo.engines.rehearsal.data import mixture
from kimi_demo.engines.rehearsal.data.tool_talk import Maker
from kimi_demo.engines.rehearsal.training import rows
from kimi_demo.engines.rehearsal.training.rows import Encoded


def _item(*ids: int, shared: bool = False) -> Encoded:
    return Encoded(numpy.array(ids, numpy.int32), numpy.array([0, *[1] * (len(ids) - 1)], numpy.int32), shared)


def test_rows_keep_conversations_whole_and_apart() -> None:
    packed = rows.pack([_item(1, 2, 3), _item(4, 5), _item(6, 7, 8, 9), _item(*range(20))], numpy.array([50], numpy.int32), length=6)
    assert packed.ids.shape == (2, 6) and sorted(packed.ids[packed.ids > 0]) == list(range(1, 10))
    assert packed.learnt.sum() == 2 + 1 + 3
    for index in range(2):
        for number in set(packed.documents[index]) - {rows.PADDING}:
            positions = packed.positions[index][packed.documents[index] == number]
            assert list(positions) == list(range(len(positions)))


def test_a_shared_head_stands_once_and_counts_for_positions() -> None:
    packed = rows.pack([_item(1, 2, shared=True), _item(3, 4, shared=True)], numpy.array([50, 51], numpy.int32), length=6)
    assert packed.ids.tolist() == [[50, 51, 1, 2, 3, 4]]
    assert packed.documents.tolist() == [[rows.SHARED, rows.SHARED, 0, 0, 1, 1]]
    assert packed.positions.tolist() == [[0, 1, 2, 3, 2, 3]]


def test_packed_conversations_compute_as_if_alone(maker: Maker) -> None:
    import torch

    from kimi_demo.engines.rehearsal.training import model, train

    gguf = base.find_base().path
    shape = base.Shape(layers=2)
    weights = base.weights(base.open_base(gguf), shape)
    trained = model.Trained(weights, shape, rank=2, seed=0)
    frozen = model.Frozen(weights, torch.device("cpu"), torch.float32)
    encode = rows.Encoder(gguf)
    items = [encode(conversation) for conversation in mixture.conversations(maker, mixture.first_stage(), count=8)]
    layer = model.make_layer(shape, model.masked_attention)

    def states(packed: rows.Rows) -> torch.Tensor:
        ids, documents, positions = (torch.from_numpy(array).long() for array in (packed.ids, packed.documents, packed.positions))
        with torch.no_grad():
            batch = model.Batch(ids, positions, train._mask(documents, "mask"))
            return model.hidden(frozen.merged(trained, 2.0), batch, shape, layer)

    together = rows.pack(items, encode.guide(), 2048)
    found = states(together)
    item = next(one for one in items if one.shared)
    alone = Encoded(numpy.concatenate([encode.guide(), item.ids]), numpy.zeros(len(encode.guide()) + len(item.ids), numpy.int32))
    single = states(rows.pack([alone], encode.guide(), len(alone.ids)))[0, -len(item.ids) :]
    for row in range(len(together.ids)):
        for document in range(together.documents[row].max() + 1):
            place = numpy.flatnonzero(together.documents[row] == document)
            if list(together.ids[row, place]) == list(item.ids):
                assert torch.allclose(found[row, place], single, atol=1e-3)
                return
    pytest.fail("the conversation is in no row")


def test_the_schedule_warms_up_and_comes_down_to_its_floor() -> None:
    from kimi_demo.engines.rehearsal.training.train import schedule

    assert schedule(0.0, 0, 0.02) == pytest.approx(1 / 40) and schedule(0.0, 39, 0.02) == pytest.approx(1.0)
    assert schedule(0.5, 500, 0.0) == pytest.approx(0.5) and schedule(1.0, 500, 0.0) == pytest.approx(0.0)
    assert schedule(1.0, 500, 0.02) == pytest.approx(0.02)


def test_processes_make_the_same_rows_as_one() -> None:
    gguf, stage = base.find_base().path, replace(mixture.second_stage(), count=6)
    alone, together = rows.encoding(gguf, stage, 1)(), rows.encoding(gguf, stage, 2)()
    assert [list(item.ids) for item in alone] == [list(item.ids) for item in together] and len(alone) == 6


def test_training_goes_on_from_an_adapter_and_ends_in_time(tmp_path: Path) -> None:
    import torch

    from kimi_demo.engines.rehearsal import adapter
    from kimi_demo.engines.rehearsal.training.train import later_plan, train

    start = adapter.load(adapter.default_adapter())
    plan = later_plan(adapter.default_adapter())
    # minutes=0: whatever the data took, some steps are made and the adapter is written.
    plan = replace(plan, stage=replace(plan.stage, count=12), length=1024, batch=1, minutes=0.0, attention="mask", layers=2)
    lines: list[str] = []
    train(base.find_base().path, tmp_path, plan, lines.append)
    made = adapter.load(tmp_path)
    assert any("loss" in line for line in lines) and "trained on" in lines[-1]
    assert len(made.factors) == 2 * 7 and made.rank == start.rank
    pairs = [pair for name, now in made.factors.items() for pair in zip(now, start.factors[name], strict=True)]
    assert all(torch.allclose(now, then, atol=2e-2) for now, then in pairs), "it started from somewhere else"
    assert any(not torch.equal(now, then) for now, then in pairs), "it learnt nothing"


def test_an_adapter_of_another_rank_is_refused(tmp_path: Path) -> None:
    from kimi_demo.engines.rehearsal import adapter
    from kimi_demo.engines.rehearsal.training.train import later_plan, train

    with pytest.raises(ValueError, match="rank 24, not 8"):
        train(base.find_base().path, tmp_path, replace(later_plan(adapter.default_adapter()), rank=8), print)
    assert not list(tmp_path.iterdir())


@pytest.mark.soak
def test_a_few_steps_on_a_cpu_write_an_adapter(tmp_path: Path) -> None:
    from kimi_demo.engines.rehearsal import adapter
    from kimi_demo.engines.rehearsal.training.train import Plan, train

    stage = replace(mixture.first_stage(), count=20)
    plan = Plan(stage, length=1024, batch=1, epochs=1, minutes=1.0, attention="mask", layers=2, workers=1)
    lines: list[str] = []
    train(base.find_base().path, tmp_path, plan, lines.append)
    assert adapter.load(tmp_path).rows.shape == (12, 576) and any("loss" in line for line in lines)
