"""Link-local addresses, which no model server has and the metadata service of many a cloud does (with keys for whoever asks)."""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from kimi_demo.dialect.failure import Failure

_NAT64 = IPv6Network("64:ff9b::/96")
_METADATA = frozenset((IPv6Address("fd00:ec2::254"), IPv4Address("100.100.100.200")))
"""Amazon's over IPv6 and Alibaba's, which are not link-local by their numbers."""


def is_link_local(address: str) -> bool:
    """Whether the address is link-local (169.254.0.0/16, fe80::/10), in whatever disguise, or a cloud's metadata service."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inside = found.ipv4_mapped or found.sixtofour or (IPv4Address(int(found) & 0xFFFFFFFF) if found in _NAT64 else None)
        if inside is not None:
            found = inside
    return found.is_link_local or found in _METADATA


async def refuse_link_local(base_url: str, timeout_s: float) -> None:
    """Raises Failure("endpoint.link_local") where any address of the host is one. A name that nobody knows is another's to tell."""
    host = urlsplit(base_url).hostname or ""
    try:
        loop = asyncio.get_running_loop()
        found = await asyncio.wait_for(loop.getaddrinfo(host, None, type=socket.SOCK_STREAM), timeout_s)
    except (OSError, TimeoutError, UnicodeError):
        return
    if any(is_link_local(str(entry[4][0])) for entry in found):
        raise Failure("endpoint.link_local", host=host)
