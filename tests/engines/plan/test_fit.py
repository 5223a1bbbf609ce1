"""Weights per GPU, cache, room and the verdict: against published figures and vLLM's own rules."""

from dataclasses import replace

import pytest

from kimi_demo.engines.accelerators import Gpu
from kimi_demo.engines.plan.cache import bytes_per_token, curve, room
from kimi_demo.engines.plan.fit import plan, plan_on_cpu, unable_to_split
from kimi_demo.engines.plan.known import K25_BYTES, known_shape
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.machines import MACHINES, Machine, machine, this_machine
from kimi_demo.engines.plan.memory import GIB
from kimi_demo.engines.plan.shape import ModelShape, shape_of
from kimi_demo.engines.plan.weights import bytes_per_gpu, total_bytes
from tests.engines.plan.configs import DEEPSEEK_V3, LLAMA_2_7B, LLAMA_3_70B

GB = 10**9
TP8 = Layout(tensor=8)


@pytest.fixture
def k25() -> ModelShape:
    found = known_shape("moonshotai/Kimi-K2.5")
    assert found is not None
    return found


@pytest.fixture
def llama() -> ModelShape:
    return shape_of(LLAMA_3_70B)


def test_the_cache_of_one_token(k25: ModelShape, llama: ModelShape) -> None:
    assert bytes_per_token(k25, TP8) == 70_272  # (512 + 64) × 2 × 61, the same on every rank
    assert bytes_per_token(k25, replace(TP8, kv_dtype="fp8")) == 35_136
    assert bytes_per_token(k25, Layout(tensor=1)) == 70_272
    assert bytes_per_token(shape_of(DEEPSEEK_V3), TP8) == 70_272
    assert bytes_per_token(llama, Layout()) == 327_680  # 2 × 128 × 8 × 2 × 80
    assert bytes_per_token(llama, TP8) == 40_960
    assert bytes_per_token(llama, Layout(tensor=16)) == 40_960  # eight heads for sixteen ranks: kept twice
    assert bytes_per_token(shape_of(LLAMA_2_7B), Layout()) == 524_288
    assert bytes_per_token(k25, Layout(tensor=8, pipeline=2)) == 576 * 2 * 31


def test_what_every_rank_has_in_full_makes_more_than_an_eighth(k25: ModelShape) -> None:
    eighth = total_bytes(k25) / 8
    assert eighth * 1.02 < bytes_per_gpu(k25, TP8) < eighth * 1.04
    # An operator's report: 72.33 GiB a card at tensor parallel size 8, in an engine that shards alike.
    assert bytes_per_gpu(k25, replace(TP8, vision_replicated=True), K25_BYTES) == pytest.approx(72.33 * GIB, rel=0.01)


def test_one_gpu_holds_everything(llama: ModelShape, k25: ModelShape) -> None:
    assert bytes_per_gpu(llama, Layout()) == total_bytes(llama)
    unpacked = 61 * 64 * 512 * 256 * 2  # W_UK and W_UV
    assert bytes_per_gpu(k25, Layout()) == pytest.approx(total_bytes(k25) + unpacked, rel=1e-9)


def test_stages_and_replicas(k25: ModelShape, llama: ModelShape) -> None:
    assert bytes_per_gpu(llama, Layout(pipeline=2)) < 0.52 * total_bytes(llama)
    # The experts are shared by all replicas' ranks, the rest is not.
    assert bytes_per_gpu(k25, Layout(tensor=8, data=2)) < 0.6 * bytes_per_gpu(k25, TP8)
    assert bytes_per_gpu(llama, Layout(tensor=4, data=2)) == bytes_per_gpu(llama, Layout(tensor=4))


def test_the_size_of_the_files_counts_where_it_is_known(llama: ModelShape) -> None:
    assert bytes_per_gpu(llama, Layout(tensor=2), on_disk=2 * total_bytes(llama)) == pytest.approx(
        2 * bytes_per_gpu(llama, Layout(tensor=2)), rel=1e-6
    )


def test_room_is_counted_in_blocks_as_vllm_does(llama: ModelShape) -> None:
    block = 16 * 327_680
    assert room(llama, Layout(context=32), 5 * block) == room(llama, Layout(context=32), 6 * block - 1)
    assert room(llama, Layout(context=32), 5 * block).concurrency == 2.5
    assert room(llama, Layout(context=32), 5 * block).tokens == 80
    assert room(llama, Layout(context=33), 6 * block).concurrency == 2.0  # a request takes three whole blocks
    assert room(llama, Layout(), -1).tokens == 0


def test_decode_context_parallelism_splits_a_requests_cache(k25: ModelShape) -> None:
    plain, split = room(k25, TP8, 40 * GB), room(k25, replace(TP8, decode_context=8), 40 * GB)
    assert split.concurrency == pytest.approx(8 * plain.concurrency, rel=0.001)


@pytest.mark.parametrize(
    ("key", "fits"),
    [("8xh200", True), ("8xb200", True), ("8xmi300x", True), ("8xrtxpro6000", True), ("8xh20", True), ("8xh100", False), ("8xa100", False)],
)
def test_kimi_k25_on_eight(k25: ModelShape, key: str, fits: bool) -> None:
    chosen = machine(key)
    assert chosen is not None
    made = plan(k25, TP8, chosen, K25_BYTES)
    assert made.fits is fits
    assert (made.refusal is None) is fits


def test_eight_h200_hold_what_others_report(k25: ModelShape) -> None:
    made = plan(k25, TP8, Machine("given", "", 8, 141 * GB), K25_BYTES)
    assert made.fits and 74 * GB < made.weights < 78 * GB
    assert 550_000 < made.cache.tokens < 720_000
    assert made.cache.concurrency == pytest.approx(made.cache.tokens / 8192, rel=0.01)


def test_eighty_gb_of_ten_to_the_nine_do_not_even_hold_the_weights(k25: ModelShape) -> None:
    made = plan(k25, TP8, Machine("given", "", 8, 80 * GB), K25_BYTES)
    assert made.refusal is not None and made.refusal.code == "plan.weights_too_large"
    assert made.cache.tokens == 0


def test_four_nvfp4_gpus_with_too_large_a_layout(k25: ModelShape) -> None:
    chosen = machine("4 × GB200")
    assert chosen is not None
    refused = plan(k25, TP8, chosen).refusal
    assert refused is not None and refused.code == "plan.too_few_gpus"


@pytest.mark.parametrize(
    ("layout", "code"),
    [
        (Layout(tensor=3), "plan.heads"),
        (Layout(tensor=8, context=262_145), "plan.context_beyond_model"),
        (Layout(tensor=2, pipeline=62), "plan.stages"),
        (Layout(tensor=8, decode_context=3), "plan.decode_context"),
        (Layout(tensor=8, data=20), "plan.too_few_gpus"),
    ],
)
def test_layouts_that_vllm_refuses(k25: ModelShape, layout: Layout, code: str) -> None:
    refused = unable_to_split(k25, layout, Machine("given", "", 128, 141 * GB))
    assert refused is not None and refused.code == code


def test_layouts_that_vllm_refuses_for_ordinary_heads(llama: ModelShape) -> None:
    many = Machine("given", "", 128, 141 * GB)
    assert unable_to_split(llama, Layout(tensor=16, decode_context=2), many) is None
    refused = unable_to_split(llama, Layout(tensor=8, decode_context=2), many)
    assert refused is not None and refused.code == "plan.decode_context_heads"
    odd = replace(llama, heads=60, kv_heads=12)
    refused = unable_to_split(odd, Layout(tensor=10), many)
    assert refused is not None and refused.code == "plan.kv_heads"


def test_no_room_for_one_request_is_told_apart_from_no_room(k25: ModelShape) -> None:
    chosen = machine("8xh20")
    assert chosen is not None
    made = plan(k25, replace(TP8, context=262_144), chosen, K25_BYTES)
    assert made.refusal is not None and made.refusal.code == "plan.context_too_long"
    assert plan(k25, replace(TP8, context=262_144, kv_dtype="fp8", decode_context=8), chosen, K25_BYTES).fits


def test_gpus_that_others_use(k25: ModelShape) -> None:
    busy = this_machine([Gpu(index, "NVIDIA H200", f"GPU-{index}", 143_771 * 2**20, 30 * GB) for index in range(8)])
    assert busy is not None
    refused = plan(k25, TP8, busy).refusal
    assert refused is not None and refused.code == "plan.gpu_in_use"
    assert this_machine([]) is None


def test_remarks(k25: ModelShape, llama: ModelShape) -> None:
    def names(shape: ModelShape, layout: Layout, key: str) -> list[str]:
        chosen = machine(key)
        assert chosen is not None
        return [remark.name for remark in plan(shape, layout, chosen).remarks]

    assert names(llama, Layout(tensor=4), "8xh200") == ["gpus_unused"]
    assert names(k25, Layout(tensor=16), "16xh200") == ["tensor_across_hosts"]
    assert names(llama, Layout(tensor=16), "16xh200") == ["kv_repeated", "tensor_across_hosts"]
    assert names(replace(k25, sparse=True, windowed=4), TP8, "8xh200") == ["windowed", "sparse"]


def test_the_curve_halves_when_the_context_doubles(k25: ModelShape) -> None:
    points = dict(curve(k25, TP8, 43 * GB))
    assert list(points) == [*(2**power for power in range(10, 18)), 262_144]
    assert points[1024] == pytest.approx(2 * points[2048])
    assert curve(k25, TP8, -GB)[0][1] == 0


def test_every_machine_has_a_key_of_its_own() -> None:
    assert len({one.key for one in MACHINES}) == len(MACHINES)
    assert all(machine(one.key.upper()) == one for one in MACHINES)
    assert machine("8xabacus") is None


def test_a_cpu_holds_the_cache_that_it_was_given(llama: ModelShape) -> None:
    small = replace(llama, layers=2, hidden=512, inner=1024, vocabulary=1000)
    made = plan_on_cpu(small, Layout(context=1024), 8 * GIB, 1)
    assert made.fits and made.left == GIB
    refused = plan_on_cpu(llama, Layout(), 8 * GIB, 1).refusal
    assert refused is not None and refused.code == "plan.host_memory"
