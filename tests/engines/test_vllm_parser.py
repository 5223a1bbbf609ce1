"""vLLM's own parser on the lines that this program makes: one child process for all of them."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines import vllm_parser
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.launch_shown import docker
from kimi_demo.engines.nodes import Way, node_commands
from kimi_demo.engines.vllm_parser import refused

LAUNCH = Launch("moonshotai/Kimi-K2.5", Path("logs"), named=True, on_cpu=False, port=8000)
HOSTS = ["10.0.0.1", "gpu-2", "gpu-3"]


def test_every_line_is_one_that_vllm_takes_and_wrong_ones_are_told_in_its_words() -> None:
    options = LaunchOptions(
        pipeline_parallel_size=2,
        data_parallel_size=2,
        expert_parallel=True,
        kv_cache_dtype="fp8",
        served_model_name="kimi",
        mm_encoder_tp_mode="data",
        language_model_only=True,
        speculative='{"method": "ngram", "num_speculative_tokens": 2}',
        log_requests=True,
        extra="--decode-context-parallel-size 8 --seed 1",
    )
    ways: tuple[Way, ...] = ("stages", "ray", "replicas", "router")
    good = [list(node.arguments) for way in ways for node in node_commands(LAUNCH, HOSTS, 8, way) if node.arguments]
    launches = (LAUNCH, replace(LAUNCH, on_cpu=True), replace(LAUNCH, extra=tuple(options.arguments())))
    good += [launch.command()[3:] for launch in launches]
    for launch in launches:  # what vLLM's images start is `vllm serve`
        words = shlex.split(docker(launch, "0.32.0").replace("\\\n", " "))
        good.append(words[next(at for at, word in enumerate(words) if word.startswith("vllm/")) + 1 :])
    wrong = [["m", "--no-such-flag", "1"], ["m", "--tensor-parallel-size", "eight"], ["m", "--enable-auto-tool-choice"]]
    found = refused([*good, *wrong])
    assert found[: len(good)] == [None] * len(good)
    unknown, size, choice = found[len(good) :]
    assert unknown is not None and "--no-such-flag" in unknown
    assert size is not None and "--tensor-parallel-size" in size
    assert choice is not None and "--tool-call-parser" in choice


def test_a_child_that_cannot_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_parser, "_COMMAND", (sys.executable, "-c", "print('no JSON')"))
    with pytest.raises(Failure) as failed:
        refused([["m"]])
    assert failed.value.code == "server.parser"
