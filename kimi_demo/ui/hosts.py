"""Under which names the page may be opened, and which origin is its own.

A page of another site that makes the browser resolve its name to 127.0.0.1 (DNS rebinding) sends that name as Host: so a
name has to be known. An IP address cannot be rebound, and is always accepted.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://(.+)", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Whether listening on `host` keeps the page on this machine. A name other than localhost is not trusted to."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Whether `host` stands for every address of the machine."""
    return host in ("", "0.0.0.0", "::")


def split_host(value: str) -> tuple[str, str] | None:
    """("name", "port or nothing") of a Host header in lower case, brackets of IPv6 kept; None if it is none."""
    found = _HOST.fullmatch(value.strip())
    return (found[1].lower().rstrip("."), found[2] or "") if found else None


class Hosts:
    """The names of this page: loopback, IP addresses, the bound host, --allowed-hosts, and the share link once it is known."""

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        self._named: set[str] = set()  # as written: with the port, if one was given
        self._names = {"localhost"}
        if not is_loopback(bound):
            # A colleague opens http://the-machine:7860; nobody outside the network can make that name resolve elsewhere.
            self._names.add((socket.gethostname() if is_everywhere(bound) else bound).lower())
        for name in allowed:
            self.allow(name)

    def allow(self, name: str) -> None:
        """Accept `name` ("demo.example.org" or "demo.example.org:8443") as a name of this page from now on."""
        parts = split_host(name)
        if parts:
            self._names.add(parts[0])
            self._named.add(_without_default_port(name.strip().lower()))

    def knows(self, host: str) -> bool:
        """Whether the Host header `host` names this page."""
        parts = split_host(host)
        return parts is not None and (parts[0] in self._names or parts[0].endswith(".localhost") or _is_address(parts[0]))

    def is_own_origin(self, origin: str, hosts: Iterable[str]) -> bool:
        """Whether a page of `origin` is ours, where the request came to one of `hosts` (Host, X-Forwarded-Host; known ones only).

        The scheme is not compared: behind a proxy that speaks TLS we see http. "null" is nobody's origin.
        """
        found = _ORIGIN.fullmatch(origin.strip())
        if not found:
            return False
        own = {_without_default_port(host.strip().lower()) for host in hosts} | self._named
        return _without_default_port(found[2].lower()) in own


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _without_default_port(host: str) -> str:
    return host.removesuffix(":80").removesuffix(":443")
