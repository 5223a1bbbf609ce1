"""Failures that are certain before loading, and what a failed load means."""

from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Gpu
from kimi_demo.engines.offline_checks import GIB, check, explain, weights_size
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.ui.texts import LANGUAGES, texts

LOG = Path("log")


def gpu(index: int, gib: int) -> Gpu:
    return Gpu(index, "NVIDIA H200", f"GPU-{index}", gib * GIB, gib * GIB)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that says it has 6 GiB of weights (sparse files: nothing is written)."""
    tmp_path.joinpath("config.json").write_text("{}")
    for name in ("model-1.safetensors", "model-2.safetensors"):
        with tmp_path.joinpath(name).open("wb") as file:
            file.truncate(3 * GIB)
    return tmp_path


def refusal(launch: OfflineLaunch, *, on_cpu: bool, free: float = 0, gpus: tuple[Gpu, ...] = ()) -> Failure | None:
    try:
        check(launch, on_cpu=on_cpu, free_memory=int(free * GIB), gpus=gpus)
    except Failure as failure:
        for language in LANGUAGES:
            texts(language).sentence(failure)  # raises KeyError where a text or a parameter is missing
        return failure
    return None


def code(failure: Failure | None) -> str | None:
    return failure.code if failure is not None else None


def test_weights_are_counted_once(model: Path) -> None:
    with model.joinpath("pytorch_model.bin").open("wb") as file:
        file.truncate(5 * GIB)
    assert weights_size(model) == 6 * GIB
    assert weights_size(model / "nowhere") == 0


def test_a_folder_that_is_not_there_and_one_without_a_model(tmp_path: Path) -> None:
    assert code(refusal(OfflineLaunch(str(tmp_path / "nowhere"), LOG), on_cpu=True, free=99)) == "model.path_missing"
    assert code(refusal(OfflineLaunch(str(tmp_path), LOG), on_cpu=True, free=99)) == "batch.no_model"


def test_on_a_cpu_weights_caches_and_processes_must_fit(model: Path) -> None:
    one = OfflineLaunch(str(model), LOG)
    assert refusal(one, on_cpu=True, free=8.7) is None
    short = refusal(one, on_cpu=True, free=8.5)
    assert short is not None and (short.code, short.params) == ("batch.too_little_memory", {"needed": "8.6", "free": "8.5"})
    three = OfflineLaunch(str(model), LOG, tensor_parallel_size=3, cpu_kv_cache_gb=2)
    assert refusal(three, on_cpu=True, free=15.5) is None
    assert code(refusal(three, on_cpu=True, free=15.3)) == "batch.too_little_memory"


def test_a_hub_id_is_not_judged_by_weights_that_are_not_here_yet() -> None:
    assert refusal(OfflineLaunch("moonshotai/Kimi-K2.5", LOG), on_cpu=True, free=3) is None


def test_there_must_be_enough_gpus_and_they_must_hold_their_share(model: Path) -> None:
    two = OfflineLaunch(str(model), LOG, tensor_parallel_size=2)
    few = refusal(two, on_cpu=False, gpus=(gpu(0, 80),))
    assert few is not None and (few.code, few.params) == ("accelerators.too_few", {"needed": "2", "found": "1"})
    assert refusal(two, on_cpu=False, gpus=(gpu(0, 4), gpu(1, 4))) is None
    small = refusal(two, on_cpu=False, gpus=(gpu(0, 80), gpu(1, 3)))
    assert small is not None and (small.code, small.params) == ("accelerators.too_small", {"needed": "3.0", "size": "3.0"})
    assert refusal(two, on_cpu=False, gpus=(gpu(0, 4), gpu(1, 4), gpu(2, 1))) is None


CORE_FAILED = RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")
LOGGED = [
    "(Worker pid=9178) INFO 11-30 16:02:15 [cpu_model_runner.py:68] Starting to load model /m...",
    "(Worker pid=9178) ERROR 11-30 16:02:16 [multiproc_executor.py:900] Traceback (most recent call last):",
    '(Worker pid=9178) ERROR 11-30 16:02:16 [multiproc_executor.py:900]   File "x.py", line 1, in f',
    "(Worker pid=9178) ERROR 11-30 16:02:16 [multiproc_executor.py:900] {error}",
    "(EngineCore pid=9108) ERROR 11-30 16:02:16 [core.py:1] Exception: WorkerProc initialization failed. See root cause above.",
]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "batch.out_of_memory"),
        ("MemoryError", "batch.out_of_memory"),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory", "batch.out_of_memory"),
        (
            "ValueError: Free memory on device cuda:0 (3.1/79.1 GiB) is less than desired GPU memory utilization (0.92)",
            "batch.out_of_memory",
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "batch.context_too_long"),
        (
            "ValueError: To serve at least one request with the models's max seq len (131072), 2.8 GiB KV cache is needed, "
            "which is larger than the available KV cache memory (1.0 GiB).",
            "batch.context_too_long",
        ),
        ("RuntimeError: Cannot find any model weights with `/m`", "batch.load_failed"),
    ],
)
def test_the_first_exception_in_the_log_is_the_reason(error: str, expected: str) -> None:
    failure = explain(CORE_FAILED, [line.replace("{error}", error) for line in LOGGED])
    assert failure.code == expected
    assert failure.params["reason"] == error


def test_a_process_killed_by_the_system_ran_out_of_memory() -> None:
    assert (
        explain(RuntimeError("Engine core initialization failed. Failed core proc(s): {'EngineCore': -9}"), []).code
        == "batch.out_of_memory"
    )


def test_without_a_log_the_exception_itself_is_the_reason_in_one_line_of_bounded_length() -> None:
    failure = explain(ValueError("no\n such   thing " + "x" * 1000), [])
    assert failure.code == "batch.load_failed"
    assert failure.params["reason"].startswith("ValueError: no such thing xxx") and len(failure.params["reason"]) == 300


def test_a_failure_stays_itself() -> None:
    failure = Failure("batch.vllm_missing")
    assert explain(failure, LOGGED) is failure
