"""What to run on each of several hosts."""

import shlex
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.nodes import Way, gpus_in, hosts_in, node_commands

LAUNCH = Launch("/models/Kimi K2.5", Path("logs"), named=True, on_cpu=False, port=8000, extra=("--seed", "1"))


def words(host: str, way: Way = "stages", hosts: str = "10.0.0.1,10.0.0.2,gpu-3.example") -> list[str]:
    [found] = [node for node in node_commands(LAUNCH, hosts_in(hosts), 8, way) if node.host == host and node.arguments]
    split = shlex.split(found.line)
    assert split[split.index("serve") + 1 :] == list(found.arguments)
    return split


def value(line: list[str], name: str) -> str:
    return line[line.index(name) + 1]


def test_stages_split_layers_between_hosts_and_keep_each_inside_one() -> None:
    first, second, third = words("10.0.0.1"), words("10.0.0.2"), words("gpu-3.example")
    for rank, line in enumerate((first, second, third)):
        assert (value(line, "--tensor-parallel-size"), value(line, "--pipeline-parallel-size")) == ("8", "3")
        assert (value(line, "--nnodes"), value(line, "--node-rank"), value(line, "--master-addr")) == ("3", str(rank), "10.0.0.1")
        assert ("--headless" in line) is (rank > 0) and ("--port" in line) is (rank == 0)
        assert "/models/Kimi K2.5" in line and "--enable-auto-tool-choice" in line and value(line, "--seed") == "1"
    assert first[0] == "VLLM_HOST_IP=10.0.0.1" and third[0] == "vllm"


def test_replicas_each_have_their_rank() -> None:
    first, third = words("10.0.0.1", "replicas"), words("gpu-3.example", "replicas")
    assert (value(first, "--data-parallel-size"), value(first, "--data-parallel-size-local")) == ("3", "1")
    assert "--headless" not in first and "--data-parallel-start-rank" not in first
    assert "--headless" in third and value(third, "--data-parallel-start-rank") == "2"
    assert value(third, "--data-parallel-address") == "10.0.0.1"


def test_ray_forms_its_cluster_first_and_serves_from_the_first_host() -> None:
    head, worker, serve = node_commands(LAUNCH, hosts_in("fd00::1 b"), 4, "ray")
    assert head.line == "ray start --head --port=6379 --num-gpus=4"
    assert (worker.host, worker.line) == ("b", "ray start --address=[fd00::1]:6379 --num-gpus=4")
    assert serve.host == "fd00::1" and "--distributed-executor-backend ray" in serve.line


def test_a_router_is_one_address_for_a_server_on_each_host() -> None:
    first, second, install, router = node_commands(LAUNCH, hosts_in("10.0.0.1 fd00::2"), 8, "router")
    for node in (first, second):
        split = shlex.split(node.line)
        assert split[:2] == [f"VLLM_HOST_IP={node.host}", "VLLM_API_KEY=${VLLM_API_KEY:?}"]  # a shell refuses to start it without one
        assert (value(split, "--host"), value(split, "--port"), value(split, "--tensor-parallel-size")) == (node.host, "8000", "8")
        assert "--pipeline-parallel-size" not in split and "--headless" not in split
    assert install.host == router.host == "10.0.0.1" and "vllm-router==" in install.line
    words_of = shlex.split(router.line)
    assert words_of[words_of.index("--worker-urls") + 1 :] == ["http://10.0.0.1:8000", "http://[fd00::2]:8000"]
    assert value(words_of, "--host") == "127.0.0.1"


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "eight", "1025", "99999999999", "٣"])
def test_gpus_that_are_no_number(text: str) -> None:
    with pytest.raises(Failure) as failed:
        gpus_in(text)
    assert failed.value.code == "nodes.gpus" and gpus_in(" 8 ") == 8


def test_no_key_is_in_any_line() -> None:
    assert not [node for node in node_commands(LAUNCH, ["a", "b"], 8) if LAUNCH.api_key in node.line]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "nodes.bad_host"),
        ("a", "nodes.too_few"),
        ("a,b,a", "nodes.twice"),
        ("a,b;rm -rf /", "nodes.bad_host"),
        ("a,$(id)", "nodes.bad_host"),
        ("a,b:8000", "nodes.bad_host"),
        ("a,-b", "nodes.bad_host"),
        (",".join(f"h{number}" for number in range(300)), "nodes.too_many"),
    ],
)
def test_hosts_that_are_none(text: str, code: str) -> None:
    with pytest.raises(Failure) as failed:
        hosts_in(text)
    assert failed.value.code == code
