"""No base URL leads to a link-local address, however it is written; loopback and private networks are an operator's to name."""

import socket
from typing import Any

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.link_local import is_link_local, refuse_link_local

SPELLINGS = [
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "[::ffff:169.254.169.254]",
    "[fe80::1]",
    "[fd00:ec2::254]",
]


@pytest.mark.parametrize("host", SPELLINGS)
async def test_it_is_refused_before_anything_is_sent(host: str) -> None:
    with pytest.raises(Failure) as caught:
        await Endpoint.connect(f"http://{host}/latest", connect_timeout_s=2.0)
    assert caught.value.code == "endpoint.link_local"


async def test_a_name_that_leads_there_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: Any, *rest: Any, **more: Any) -> list[Any]:
        assert host == "innocent.example"
        return [(socket.AF_INET, 1, 6, "", ("10.0.0.1", 0)), (socket.AF_INET, 1, 6, "", ("169.254.169.254", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(Failure) as caught:
        await refuse_link_local("http://innocent.example/v1", 2.0)
    assert caught.value.params == {"host": "innocent.example"}


@pytest.mark.parametrize("address", ["64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fe80::1%eth0", "100.100.100.200"])
def test_disguises(address: str) -> None:
    assert is_link_local(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd12::1", "8.8.8.8", "169.253.1.1", "64:ff9b::808:808"]
)
def test_what_an_operator_may_name(address: str) -> None:
    assert not is_link_local(address)


async def test_a_name_that_nobody_knows_is_left_to_the_connection() -> None:
    await refuse_link_local("http://no-such-host.invalid/v1", 2.0)
