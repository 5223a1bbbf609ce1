"""Reverse proxies: only those that the operator named are believed about the scheme and the name under which they were reached."""

import ipaddress
from dataclasses import dataclass

from starlette.requests import HTTPConnection

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Proxies:
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, text: str) -> "Proxies":
        """text: addresses and networks, separated by commas. Raises ValueError."""
        return cls(tuple(ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()))

    def sent(self, request: HTTPConnection) -> bool:
        """Whether the request comes from one of them."""
        try:
            address = ipaddress.ip_address(request.client.host if request.client is not None else "")
        except ValueError:
            return False
        return any(address in network for network in self.networks)

    def scheme(self, request: HTTPConnection) -> str:
        """ "http" or "https", as the proxy was reached; "" where nobody who is believed says so."""
        return _first(request, "x-forwarded-proto").lower() if self.sent(request) else ""

    def host(self, request: HTTPConnection) -> str:
        """The name under which the proxy was reached; "" as above."""
        return _first(request, "x-forwarded-host") if self.sent(request) else ""


def _first(request: HTTPConnection, name: str) -> str:
    return request.headers.get(name, "").split(",")[0].strip()
