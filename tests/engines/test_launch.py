import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch import Launch, refuse_ours
from kimi_demo.settings import Settings


def launch(folder: Path, **changes: object) -> Launch:
    return replace(Launch(model=str(folder), logs=folder / "logs", port=8123), **changes)  # type: ignore[arg-type]


def test_the_guides_launch_line_for_a_named_model_on_gpus() -> None:
    command = Launch(
        "moonshotai/Kimi-K2.5", Path("logs"), named=True, tensor_parallel_size=8, on_cpu=False, gpu_memory_utilization=0.9, port=8123
    ).command()
    assert command[:3] == [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    assert command[3:] == (
        "--model moonshotai/Kimi-K2.5 --host 127.0.0.1 --port 8123 --tensor-parallel-size 8 --max-model-len 8192 "
        "--tool-call-parser kimi_k2 --reasoning-parser kimi_k2 --enable-auto-tool-choice --trust-remote-code --gpu-memory-utilization 0.9"
    ).split(" ")


def test_the_stand_in_on_a_cpu_runs_eagerly_and_trusts_no_code(tmp_path: Path) -> None:
    command = launch(tmp_path).command()
    assert command[-6:] == ["--enforce-eager", "--max-num-seqs", "16", "--no-enable-chunked-prefill", "--max-num-batched-tokens", "8208"]
    assert "--trust-remote-code" not in command and "--gpu-memory-utilization" not in command


def test_a_persons_arguments_come_last_so_that_they_win(tmp_path: Path) -> None:
    assert launch(tmp_path, extra=("--max-num-seqs", "4")).command()[-2:] == ["--max-num-seqs", "4"]


def test_the_key_is_in_the_environment_only_and_new_each_time(tmp_path: Path) -> None:
    one, two = Launch(str(tmp_path), tmp_path), Launch(str(tmp_path), tmp_path)
    assert len(one.api_key) >= 32 and one.api_key != two.api_key
    assert one.environment()["VLLM_API_KEY"] == one.api_key
    assert one.api_key not in " ".join(one.command()) and one.api_key not in repr(one)


def test_hubs_are_left_alone_for_a_folder_and_chosen_for_an_id(tmp_path: Path) -> None:
    folder = launch(tmp_path, model_source="modelscope").environment()
    assert folder["HF_HUB_OFFLINE"] == "1" and "VLLM_USE_MODELSCOPE" not in folder
    scope = Launch("moonshotai/Kimi-K2.5", tmp_path, model_source="modelscope").environment()
    assert scope["VLLM_USE_MODELSCOPE"] == "1" and "HF_HUB_OFFLINE" not in scope
    assert "VLLM_USE_MODELSCOPE" not in Launch("moonshotai/Kimi-K2.5", tmp_path).environment()


def test_cpu_variables_only_on_a_cpu_and_threads_bound_only_for_several_ranks(tmp_path: Path) -> None:
    one = launch(tmp_path, cpu_kv_cache_gb=3).environment()
    assert one["VLLM_CPU_KVCACHE_SPACE"] == "3" and "VLLM_CPU_OMP_THREADS_BIND" not in one
    three = launch(tmp_path, tensor_parallel_size=3, cores=(0, 1)).environment()
    assert len(three["VLLM_CPU_OMP_THREADS_BIND"].split("|")) == 3
    assert set(three["VLLM_CPU_OMP_THREADS_BIND"].replace("|", "")) == {"0", "1"}
    assert launch(tmp_path, tensor_parallel_size=2, cores=(4, 5, 6, 9)).environment()["VLLM_CPU_OMP_THREADS_BIND"] == "4,5|6,9"
    assert not any(name.startswith("VLLM_CPU") for name in launch(tmp_path, on_cpu=False, tensor_parallel_size=8).environment())


def test_the_child_inherits_everything_but_the_demos_own_variables(tmp_path: Path) -> None:
    secrets = {"KIMI_DEMO_API_KEY": "sk-1", "KIMI_DEMO_AUTH": "a:b", "kimi_demo_auth": "a:b", "VLLM_API_KEY": "old"}
    child = launch(tmp_path).child_environment(secrets | {"PATH": "/bin", "HF_HOME": "/hf"})
    assert child["PATH"] == "/bin" and child["HF_HOME"] == "/hf"
    assert not {"sk-1", "a:b", "old"} & set(child.values())


def test_a_persons_thread_binding_stays(tmp_path: Path) -> None:
    two = launch(tmp_path, tensor_parallel_size=2, cores=(0, 1))
    assert two.child_environment({"VLLM_CPU_OMP_THREADS_BIND": "7|9"})["VLLM_CPU_OMP_THREADS_BIND"] == "7|9"
    assert two.child_environment({"VLLM_CPU_OMP_THREADS_BIND": ""})["VLLM_CPU_OMP_THREADS_BIND"] == "0|1"


def test_from_settings(tmp_path: Path) -> None:
    made = Launch.from_settings(Settings(_env_file=None, data=tmp_path, vllm_args="--seed 7 --served-model-name 'a b'"), str(tmp_path))
    assert made.extra == ("--seed", "7", "--served-model-name", "a b")
    assert made.rehearsal and made.tensor_parallel_size == 1 and made.logs == tmp_path / "logs" and made.port == 0
    assert set(made.cores) == os.sched_getaffinity(0)
    named = Launch.from_settings(Settings(_env_file=None, model="moonshotai/Kimi-K2.5"), "moonshotai/Kimi-K2.5")
    assert named.named and named.tensor_parallel_size == 8 and named.gpu_memory_utilization == 0.92


def test_the_stand_in_leaves_room_on_a_gpu_unless_a_person_says_otherwise(tmp_path: Path) -> None:
    assert Launch.from_settings(Settings(_env_file=None), str(tmp_path)).gpu_memory_utilization == 0.3
    chosen = Settings(_env_file=None, gpu_memory_utilization=0.92)
    assert Launch.from_settings(chosen, str(tmp_path)).gpu_memory_utilization == 0.92


@pytest.mark.parametrize("argument", ["--port", "--port=80", "--host", "--api-key", "--api_key=x", "--model", "--uds", "--por"])
def test_arguments_that_move_the_server_are_refused(argument: str) -> None:
    with pytest.raises(Failure) as refused:
        Launch.from_settings(Settings(_env_file=None, vllm_args=f"--seed 1 {argument} 2"), "m")
    assert refused.value.code == "server.argument_ours" and refused.value.params == {"argument": argument.partition("=")[0]}


def test_arguments_with_similar_names_are_not() -> None:
    refuse_ours(["--model-impl", "auto", "--api-server-count", "2", "--hf-overrides", "{}", "-tp", "2", "model", "--headers"])


@pytest.mark.parametrize(
    ("model", "path"),
    [("/models/k", True), ("./k", True), ("~/k", True), ("a/b/c", True), ("moonshotai/Kimi-K2.5", False), ("gpt2", False)],
)
def test_what_looks_like_a_path(model: str, path: bool) -> None:
    assert Launch(model, Path("logs")).looks_like_path is path


def test_a_port_and_a_key_that_a_person_sets(tmp_path: Path) -> None:
    chosen = Settings(_env_file=None, data=tmp_path, server_port=8000, server_api_key=SecretStr("sk-mine"))
    made = Launch.from_settings(chosen, str(tmp_path))
    assert (made.port, made.api_key) == (8000, "sk-mine")
    assert Launch.from_settings(chosen, str(tmp_path), port=9000).port == 9000


def test_without_a_key_none_is_asked_for_not_even_an_inherited_one(tmp_path: Path) -> None:
    assert "VLLM_API_KEY" not in launch(tmp_path, api_key="").child_environment({"VLLM_API_KEY": "left over", "PATH": "/bin"})
