"""The port and the shared memory of this machine."""

import os
import socket
from pathlib import Path

import pytest

from kimi_demo.engines.plan.surroundings import port_taken, surroundings


def test_a_port_that_somebody_listens_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert port_taken("127.0.0.1", port)
        assert [remark.name for remark in surroundings("127.0.0.1", port, 1)] == ["port_taken"]
    assert not port_taken("127.0.0.1", port)
    assert not port_taken("127.0.0.1", 0)


def test_small_shared_memory_matters_only_to_several_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs("/")
    blocks = 64 * 2**20 // real.f_frsize
    small = os.statvfs_result((real.f_bsize, real.f_frsize, blocks, *tuple(real)[3:]))
    monkeypatch.setattr(os, "statvfs", lambda path: small)
    [remark] = surroundings("127.0.0.1", 0, 8)
    assert (remark.name, remark.params["size"]) == ("small_shared_memory", "67")
    assert surroundings("127.0.0.1", 0, 1) == []


def test_no_shared_memory_to_look_at(tmp_path: Path) -> None:
    assert surroundings("127.0.0.1", 0, 8, tmp_path / "none") == []
