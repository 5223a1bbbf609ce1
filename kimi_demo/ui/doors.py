"""The socket of the page, and when it may not be opened."""

import errno
import socket

from kimi_demo.dialect.failure import Failure
from kimi_demo.settings import Settings
from kimi_demo.ui.hosts import is_loopback


def refuse_open_doors(settings: Settings) -> None:
    """Raise Failure("access.host_without_auth" or "access.share_without_auth") where strangers could walk in."""
    if settings.has_door or settings.open:
        return
    if settings.share:
        raise Failure("access.share_without_auth")
    if not is_loopback(settings.host):
        raise Failure("access.host_without_auth", host=settings.host)


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. Raises Failure of the `page.` family.

    It listens at once, not only when the server starts: of two programs that bind together, the second learns it here.
    """
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise Failure("page.host_unknown", host=host) from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)  # localhost: 127.0.0.1, which is the address we print
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait for old connections to time out
        sock.bind(address)
        sock.listen(128)
    except OSError as error:
        sock.close()
        raise _refused(error, host, port) from None
    return sock


def _refused(error: OSError, host: str, port: int) -> Failure:
    if error.errno == errno.EADDRINUSE:
        return Failure("page.port_taken", port=port)
    if error.errno == errno.EACCES:
        return Failure("page.port_forbidden", port=port)
    return Failure("page.host_unknown", host=host)
