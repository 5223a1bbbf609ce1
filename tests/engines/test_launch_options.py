import shlex
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.launch_shown import curls, docker, shell
from kimi_demo.settings import Settings


def settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]


def test_without_changes_the_launch_is_the_one_that_the_demo_was_started_with() -> None:
    given = settings(model="owner/model", max_model_len=4096, vllm_args="--seed 1 --x 'a b'", tensor_parallel_size=4)
    assert Launch.from_settings(LaunchOptions.of(given).applied(given), "m").command() == Launch.from_settings(given, "m").command()


def test_what_the_form_would_not_take_does_not_keep_the_demo_from_starting() -> None:
    given = settings(max_model_len=10**9, tensor_parallel_size=5000)
    options = LaunchOptions.of(given)
    assert options.max_model_len == 10**9 and "5000" in Launch.from_settings(options.applied(given), "m").command()


def test_each_option_is_an_argument_of_vllm() -> None:
    options = LaunchOptions(
        tensor_parallel_size=8,
        pipeline_parallel_size=2,
        data_parallel_size=3,
        expert_parallel=True,
        max_model_len=131072,
        gpu_memory_utilization=0.8,
        kv_cache_dtype="fp8",
        served_model_name="kimi-k2.5",
        mm_encoder_tp_mode="data",
        language_model_only=True,
        speculative='{"method": "ngram", "num_speculative_tokens": 3}',
        log_requests=True,
        extra="--seed 7",
    )
    command = Launch.from_settings(options.applied(settings(model="owner/model")), "m").command()
    line = shlex.join(command)
    for part in (
        *("--tensor-parallel-size 8", "--pipeline-parallel-size 2", "--data-parallel-size 3", "--enable-expert-parallel"),
        *("--max-model-len 131072", "--kv-cache-dtype fp8", "--served-model-name kimi-k2.5", "--mm-encoder-tp-mode data"),
        *("--language-model-only", "--enable-log-requests", "--seed 7"),
    ):
        assert part in line
    assert command[command.index("--speculative-config") + 1] == options.speculative
    assert command[-2:] == ["--seed", "7"]  # what comes last wins


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tensor_parallel_size", 0),
        ("max_model_len", "many"),
        ("gpu_memory_utilization", 1.5),
        ("kv_cache_dtype", "int3"),
        ("served_model_name", "a name"),
        ("served_model_name", "x; rm -rf"),
        ("speculative", "[1]"),
        ("server_port", 65536),
        ("server_port", -1),
        ("speculative", "{"),
        ("extra", "--x 'open"),
        ("unknown", "1"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        LaunchOptions.model_validate({field: value})
    assert caught.value.errors()[0]["loc"][0] == field


@pytest.mark.parametrize("extra", ["--port 1", "--host=0.0.0.0", "--api-key x", "--model other", "--por 1", "--api_key x"])
def test_what_only_the_demo_may_set_is_refused(extra: str) -> None:
    with pytest.raises(Failure) as caught:
        LaunchOptions(extra=extra).applied(settings())
    assert caught.value.code == "server.argument_ours"


def test_a_server_of_our_own_gets_neither_address_nor_key_of_another() -> None:
    found = LaunchOptions().applied(settings(base_url="http://host/v1", api_key=SecretStr("not-ours")))
    assert found.base_url is None and found.api_key is None


def launch(folder: Path, **more: object) -> Launch:
    return Launch(str(folder), folder / "logs", named=True, api_key="never-shown-key", **more)  # type: ignore[arg-type]


def test_the_shell_line_is_the_command_without_its_key(tmp_path: Path) -> None:
    made = launch(tmp_path, extra=("--speculative-config", '{"a": "it\'s"}'), on_cpu=True, port=8123)
    told = shell(made)
    words = shlex.split(told.replace("\\\n", " "))
    command = words[words.index("python") + 1 :]
    assert command == made.command()[1:]
    assert words[0] == "VLLM_API_KEY=$VLLM_API_KEY" and "VLLM_CPU_KVCACHE_SPACE=1" in words
    assert "never-shown-key" not in told


def test_the_docker_line_mounts_the_model_and_publishes_on_loopback_only(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "weights").write_text("")
    (tmp_path / "model" / "a.safetensors").symlink_to(tmp_path / "blobs" / "weights")
    words = shlex.split(docker(launch(tmp_path / "model", on_cpu=False), "0.32.0+cu130").replace("\\\n", " "))
    assert words[:2] == ["docker", "run"] and "--gpus" in words and "127.0.0.1:8000:8000" in words
    assert f"{tmp_path / 'model'}:{tmp_path / 'model'}:ro" in words and f"{tmp_path / 'blobs'}:{tmp_path / 'blobs'}:ro" in words
    assert "vllm/vllm-openai:v0.32.0" in words and words[words.index("--host") + 1] == "0.0.0.0"
    assert words[words.index("vllm/vllm-openai:v0.32.0") + 1] == str(tmp_path / "model")  # the image starts `vllm serve`
    assert "never-shown-key" not in " ".join(words)
    assert "--gpus" not in docker(launch(tmp_path / "model", on_cpu=True), "0.32.0")
    later = tmp_path / "built" / "later"
    assert f"{later}:{later}:ro" in shlex.split(docker(launch(later, on_cpu=True), "0.32.0").replace("\\\n", " "))


@pytest.mark.parametrize(("source", "cache"), [("huggingface", ".cache/huggingface"), ("modelscope", ".cache/modelscope")])
def test_a_model_from_a_hub_is_kept_in_that_hubs_cache(source: Any, cache: str) -> None:
    words = shlex.split(docker(Launch("owner/model", Path("logs"), named=True, model_source=source, on_cpu=False), "0.32.0"))
    assert f"$HOME/{cache}:/root/{cache}" in words


def test_a_port_is_one_and_0_takes_any() -> None:
    assert Launch.from_settings(LaunchOptions(server_port=8123).applied(settings()), "m").port == 8123
    assert Launch.from_settings(LaunchOptions().applied(settings(server_port=8123)), "m").port == 0
    assert LaunchOptions.of(settings(server_port=8123)).server_port == 8123


def test_curl_lines_are_json_whatever_the_model_is_called() -> None:
    import json

    for _, line in curls("http://127.0.0.1:1/v1", "a'b\"c"):
        words = shlex.split(line.replace("\\\n", " "))
        assert "Authorization: Bearer $VLLM_API_KEY" in words
        if "-d" in words:
            assert json.loads(words[words.index("-d") + 1])["model"] == "a'b\"c"
