"""Launches that are certain to fail on the GPUs that are there."""

from dataclasses import replace
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Gpu
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.plan.refuse import refuse_what_cannot_fit
from kimi_demo.engines.server import Server

K25 = Launch("moonshotai/Kimi-K2.5", Path("logs"), named=True, tensor_parallel_size=8, on_cpu=False)


def eight(mebibytes: int) -> list[Gpu]:
    return [Gpu(index, "NVIDIA", f"GPU-{index}", mebibytes * 2**20, (mebibytes - 500) * 2**20) for index in range(8)]


H100, RTX, H200 = eight(81_559), eight(97_887), eight(143_771)


def test_kimi_on_eight_times_eighty_gb_is_refused() -> None:
    with pytest.raises(Failure) as failed:
        refuse_what_cannot_fit(K25, H100)
    assert failed.value.code == "plan.nothing_left" and failed.value.params["weights"] == "76.4"


def test_where_it_fits_or_may_fit_nothing_is_said() -> None:
    refuse_what_cannot_fit(K25, H200)
    refuse_what_cannot_fit(K25, RTX)
    refuse_what_cannot_fit(replace(K25, gpu_memory_utilization=0.84), RTX)  # what is left is within what the estimate may be wrong by
    refuse_what_cannot_fit(replace(K25, max_model_len=262_144), RTX)  # vLLM says what would fit


def test_what_no_memory_helps_is_refused_too() -> None:
    with pytest.raises(Failure) as failed:
        refuse_what_cannot_fit(replace(K25, tensor_parallel_size=6), H200)
    assert failed.value.code == "plan.heads"
    with pytest.raises(Failure) as failed:
        refuse_what_cannot_fit(replace(K25, extra=("--data-parallel-size", "2")), H200)
    assert failed.value.code == "plan.too_few_gpus"
    refuse_what_cannot_fit(replace(K25, extra=("--pipeline-parallel-size", "2", "--nnodes", "2")), H200)


def test_what_is_not_known_is_left_to_vllm() -> None:
    refuse_what_cannot_fit(replace(K25, model="somebody/Else"), H100)
    refuse_what_cannot_fit(replace(K25, on_cpu=True), H100)
    refuse_what_cannot_fit(K25, [])


async def test_a_start_is_refused_before_any_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kimi_demo.engines.server.gpus", lambda: H100)
    events: list[object] = []
    with pytest.raises(Failure) as failed:
        await Server.start(replace(K25, logs=tmp_path), events.append)
    assert failed.value.code == "plan.nothing_left" and events == []
