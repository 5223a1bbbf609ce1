"""The batch engine's arguments and environment."""

import os
from pathlib import Path

import pytest

from kimi_demo.engines.offline_launch import OfflineLaunch, bind_threads, environment, llm_arguments, set_environment
from kimi_demo.settings import Settings

LOG = Path("log.json")


def test_settings_become_a_launch(tmp_path: Path) -> None:
    named = OfflineLaunch.from_settings(Settings(model="moonshotai/Kimi-K2.5", data=tmp_path), "moonshotai/Kimi-K2.5")
    assert (named.tensor_parallel_size, named.named, named.max_model_len) == (8, True, 8192)
    assert named.log == tmp_path.resolve() / "logs" / "batch-engine.log"
    assert named.gpu_memory_utilization == 0.92
    rehearsal = OfflineLaunch.from_settings(Settings(data=tmp_path), str(tmp_path))
    assert (rehearsal.tensor_parallel_size, rehearsal.named, rehearsal.folder) == (1, False, tmp_path)
    assert rehearsal.gpu_memory_utilization == 0.3
    chosen = OfflineLaunch.from_settings(Settings(data=tmp_path, gpu_memory_utilization=0.5), str(tmp_path))
    assert chosen.gpu_memory_utilization == 0.5


def test_only_a_named_model_may_bring_its_own_code() -> None:
    launch = OfflineLaunch("moonshotai/Kimi-K2.5", Path("l"), named=True, tensor_parallel_size=8, gpu_memory_utilization=0.8)
    arguments = llm_arguments(launch, on_cpu=False, log_config=LOG)
    assert arguments["trust_remote_code"] is True and arguments["tensor_parallel_size"] == 8
    assert arguments["gpu_memory_utilization"] == 0.8 and arguments["reasoning_parser"] == "kimi_k2"
    assert "enforce_eager" not in arguments and "max_num_seqs" not in arguments
    stand_in = llm_arguments(OfflineLaunch("x", Path("l")), on_cpu=True, log_config=LOG)
    assert stand_in["trust_remote_code"] is False
    assert stand_in["enforce_eager"] is True and stand_in["max_num_seqs"] == 32 and "gpu_memory_utilization" not in stand_in


@pytest.mark.parametrize(("context", "step"), [(2048, 4096), (8192, 8192 + 32)])
def test_on_a_cpu_a_prompt_is_read_in_one_step(context: int, step: int) -> None:
    """Seeded rows kill vLLM 0.32 on a CPU when their prompts are read in parts."""
    arguments = llm_arguments(OfflineLaunch("x", Path("l"), max_model_len=context), on_cpu=True, log_config=LOG)
    assert (arguments["enable_chunked_prefill"], arguments["max_num_batched_tokens"]) == (False, step)
    assert "enable_chunked_prefill" not in llm_arguments(OfflineLaunch("x", Path("l")), on_cpu=False, log_config=LOG)


def test_a_hub_id_comes_from_the_hub_that_was_chosen() -> None:
    hub = OfflineLaunch("moonshotai/Kimi-K2.5", Path("l"), model_source="modelscope")
    assert environment(hub, on_cpu=False, cores=[0])["VLLM_USE_MODELSCOPE"] == "1"
    assert "VLLM_USE_MODELSCOPE" not in environment(OfflineLaunch("a/b", Path("l")), on_cpu=False, cores=[0])


def test_a_local_folder_asks_no_hub(tmp_path: Path) -> None:
    variables = environment(OfflineLaunch(str(tmp_path), Path("l"), model_source="modelscope"), on_cpu=False, cores=[0])
    assert variables["HF_HUB_OFFLINE"] == "1" and "VLLM_USE_MODELSCOPE" not in variables
    assert variables["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn" and variables["VLLM_NO_USAGE_STATS"] == "1"
    assert "VLLM_CPU_KVCACHE_SPACE" not in variables


def test_on_a_cpu_the_cache_is_bounded_and_ranks_get_their_cores() -> None:
    one = environment(OfflineLaunch("a/b", Path("l"), cpu_kv_cache_gb=2), on_cpu=True, cores=[0, 1])
    assert one["VLLM_CPU_KVCACHE_SPACE"] == "2" and one["VLLM_CPU_OMP_THREADS_BIND"] == "1"  # the chat server computes on the first
    four = environment(OfflineLaunch("a/b", Path("l")), on_cpu=True, cores=[0, 1, 2, 3])
    assert "VLLM_CPU_OMP_THREADS_BIND" not in four
    three = environment(OfflineLaunch("a/b", Path("l"), tensor_parallel_size=3), on_cpu=True, cores=[0, 1])
    assert three["VLLM_CPU_OMP_THREADS_BIND"] == "0|0|1"


@pytest.mark.parametrize(
    ("cores", "ranks", "bind"),
    [
        ([0, 1], 2, "0|1"),
        ([0, 1, 2, 3], 2, "0,1|2,3"),
        ([0, 1, 2, 3, 4], 2, "0,1|2,3,4"),
        ([4], 3, "4|4|4"),
        ([2, 5, 7, 9], 3, "2|5|7,9"),
        (list(range(16)), 8, "0,1|2,3|4,5|6,7|8,9|10,11|12,13|14,15"),
    ],
)
def test_every_rank_has_a_core_and_no_core_is_idle(cores: list[int], ranks: int, bind: str) -> None:
    assert bind_threads(cores, ranks) == bind
    used = {int(core) for rank in bind.split("|") for core in rank.split(",")}
    assert used == set(cores) or len(cores) < ranks


def test_variables_are_put_back_and_a_persons_own_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "7")
    monkeypatch.delenv("VLLM_NO_USAGE_STATS", raising=False)
    with pytest.raises(ZeroDivisionError), set_environment({"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}):
        assert os.environ["VLLM_CPU_KVCACHE_SPACE"] == "7" and os.environ["VLLM_NO_USAGE_STATS"] == "1"
        raise ZeroDivisionError
    assert os.environ["VLLM_CPU_KVCACHE_SPACE"] == "7" and "VLLM_NO_USAGE_STATS" not in os.environ
