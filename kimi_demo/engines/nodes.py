"""One model over several machines: what to run on each, from a list of hosts. Pure; vLLM does the work.

Sources: vLLM 0.32, docs "Parallelism and Scaling" and "Data Parallel Deployment", config/parallel.py; vLLM Router 0.1.17. Every line's
arguments are held against vLLM's own parser (tests/engines/test_vllm_parser.py), the router is run in front of two servers
(tests/engines/test_router.py). That two hosts form a group was run on one machine over loopback only.
"""

import ipaddress
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch import Launch

Way = Literal["stages", "ray", "replicas", "router"]
"""stages: the layers are split between hosts, each layer inside one (pipeline parallel; vLLM's own launch). ray: the same through a Ray
cluster. replicas: each host has a whole model, and the first spreads the requests over them (data parallel). router: each host has a
server of its own, and vLLM's router on the first is one address for all: a host may go and come back while the others answer."""

MASTER_PORT, RPC_PORT, RAY_PORT, ROUTER_PORT = 29501, 13345, 6379, 8080
ROUTER = "vllm-router==0.1.17"

_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*")
_MOST_HOSTS, _MOST_GPUS = 256, 1024


@dataclass(frozen=True)
class NodeCommand:
    """A line for the shell of `host`, to be started in the order given. arguments: vLLM's, [] for a line that is not vLLM's."""

    host: str
    line: str
    arguments: tuple[str, ...] = ()


def hosts_in(text: str) -> list[str]:
    """Host names or addresses, separated by commas or spaces.

    Raises Failure: nodes.bad_host, nodes.twice, nodes.too_few, nodes.too_many.
    """
    found = re.split(r"[\s,]+", text.strip())
    for host in found:
        if not (_is_address(host) or (len(host) <= 253 and _NAME.fullmatch(host))):
            raise Failure("nodes.bad_host", host=host[:100])
    twice = next((host for host in found if found.count(host) > 1), None)
    if twice is not None:
        raise Failure("nodes.twice", host=twice)
    if len(found) < 2:
        raise Failure("nodes.too_few")
    if len(found) > _MOST_HOSTS:
        raise Failure("nodes.too_many", count=len(found), most=_MOST_HOSTS)
    return found


def gpus_in(text: str) -> int:
    """GPUs of each host. Raises Failure("nodes.gpus")."""
    if not re.fullmatch(r"[0-9]{1,4}", text.strip()) or not 1 <= int(text) <= _MOST_GPUS:
        raise Failure("nodes.gpus", value=text.strip()[:20])
    return int(text)


def node_commands(launch: Launch, hosts: Sequence[str], gpus_a_host: int, way: Way = "stages") -> list[NodeCommand]:
    """The first host is where requests go. Each layer stays inside a host (tensor parallel size = its GPUs); between hosts goes little.

    The key goes into the first host's VLLM_API_KEY. The API server listens on that host's loopback, as everywhere in this program; only
    behind a router each host's listens on its own address, and asks for the key, which goes into VLLM_API_KEY on every host.
    """
    launch = replace(launch, tensor_parallel_size=gpus_a_host)
    first, count = hosts[0], len(hosts)
    if way == "router":
        servers = [_line(launch, host, [], listens=True) for host in hosts]
        return [*servers, *router_commands(first, [f"http://{_joined(host, launch.port)}" for host in hosts])]
    if way == "ray":
        extra = ["--pipeline-parallel-size", str(count), "--distributed-executor-backend", "ray"]
        starts = [NodeCommand(first, f"ray start --head --port={RAY_PORT} --num-gpus={gpus_a_host}")]
        address = _joined(first, RAY_PORT)
        starts += [NodeCommand(host, f"ray start --address={address} --num-gpus={gpus_a_host}") for host in hosts[1:]]
        return [*starts, _line(launch, first, extra)]
    if way == "replicas":
        shared = ["--data-parallel-size", str(count), "--data-parallel-size-local", "1"]
        shared += ["--data-parallel-address", first, "--data-parallel-rpc-port", str(RPC_PORT)]
        ranks = [[], *(["--headless", "--data-parallel-start-rank", str(rank)] for rank in range(1, count))]
    else:
        shared = ["--pipeline-parallel-size", str(count), "--nnodes", str(count), "--master-addr", first, "--master-port", str(MASTER_PORT)]
        ranks = [["--node-rank", str(rank), *(["--headless"] if rank else [])] for rank in range(count)]
    return [_line(launch, host, [*shared, *own]) for host, own in zip(hosts, ranks, strict=True)]


def router_commands(host: str, servers: Sequence[str], port: int = ROUTER_PORT) -> list[NodeCommand]:
    """vLLM's router on `host`'s loopback, in an environment of its own. servers: addresses without /v1; they must serve the same model.

    It passes the key on that a request carries, keeps a conversation on the server that has it in its cache as long as that has no more
    than four requests more than another (64 by its default, which leaves a second server idle), and leaves out one that does not answer.
    """
    line = f"~/vllm-router/bin/vllm-router --host 127.0.0.1 --port {port} --prometheus-host 127.0.0.1 --policy cache_aware"
    line += " --balance-abs-threshold 4 --health-check-interval-secs 2 --health-failure-threshold 1 --worker-urls"
    install = f"python3 -m venv ~/vllm-router && ~/vllm-router/bin/pip install {ROUTER}"
    return [NodeCommand(host, install), NodeCommand(host, " ".join([line, *map(shlex.quote, servers)]))]


def _line(launch: Launch, host: str, extra: list[str], *, listens: bool = False) -> NodeCommand:
    """`vllm serve`, since vllm.entrypoints.openai.api_server knows no --headless. listens: on the host's address, never without a key."""
    command = launch.command()[3:]
    model = command[command.index("--model") + 1]
    rest = command[: command.index("--model")] + command[command.index("--model") + 2 :]
    if "--headless" in extra:  # no API server there
        for name in ("--host", "--port"):
            at = rest.index(name)
            del rest[at : at + 2]
    if listens:
        rest[rest.index("--host") + 1] = host
    arguments = [model, *rest, *extra]
    variables = [f"VLLM_HOST_IP={host}"] if _is_address(host) else []
    if listens:
        variables.append('VLLM_API_KEY="${VLLM_API_KEY:?}"')
    return NodeCommand(host, " ".join([*variables, "vllm", "serve", *map(shlex.quote, arguments)]), tuple(arguments))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
