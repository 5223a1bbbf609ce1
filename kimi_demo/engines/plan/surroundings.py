"""What beside GPU memory can stop a start on this machine: the port, shared memory. Looks at the machine; changes nothing."""

import errno
import os
import socket
from contextlib import closing
from pathlib import Path

from kimi_demo.engines.plan.remark import Remark

_SHARED_MEMORY = 2**30
"""NCCL and vLLM's message queues between ranks; Docker's default of 64 MB ends them with a bus error (`--ipc=host` or `--shm-size`)."""


def port_taken(host: str, port: int) -> bool:
    """Whether another program listens there. Tried by binding, as the server will; 0 is always free."""
    if port == 0:
        return False
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def surroundings(host: str, port: int, ranks: int, shared_memory: Path = Path("/dev/shm")) -> list[Remark]:
    """Remarks "port_taken" and "small_shared_memory"."""
    found = []
    if port_taken(host, port):
        found.append(Remark("port_taken", {"port": str(port)}))
    if ranks > 1:
        try:
            size = os.statvfs(shared_memory)
        except OSError:
            return found
        if size.f_blocks * size.f_frsize < _SHARED_MEMORY:
            megabytes = size.f_blocks * size.f_frsize // 10**6
            found.append(Remark("small_shared_memory", {"path": str(shared_memory), "size": str(megabytes)}))
    return found
