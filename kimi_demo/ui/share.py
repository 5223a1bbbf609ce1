"""The public link: Gradio's tunnel to this machine's port, and what can go wrong with it in plain words."""

import hashlib
import platform
import secrets
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kimi_demo.dialect.failure import Failure
from kimi_demo.settings import Settings

if TYPE_CHECKING:
    from gradio.tunneling import Tunnel


def open_share_link(settings: Settings, port: int) -> str:
    """The https address under which `port` of this machine is now reachable. Blocks, up to 90 s where packets are dropped.

    Raises Failure of the `share.` family; the page goes on without a link then. There must be a door, or the
    word that there is to be none: the command line sees to it, and so does this.
    """
    if not settings.has_door and not settings.open:
        raise Failure("access.share_without_auth")
    from gradio import networking, tunneling

    _drop_altered_client(tunneling)
    try:
        # As Gradio's launch() calls it; None: Gradio's own share server, or GRADIO_SHARE_SERVER_ADDRESS.
        return str(networking.setup_tunnel("127.0.0.1", port, secrets.token_urlsafe(32), None, None))
    except Exception as error:
        close_share_links()
        raise _failure(error, tunneling) from error


def tunnel_processes() -> list[int]:
    """The process ids of the tunnel programs that this process started."""
    processes: list[subprocess.Popen[bytes] | None] = [tunnel.proc for tunnel in _tunnels()]  # Gradio declares it None
    return [process.pid for process in processes if process is not None]


def close_share_links() -> None:
    """End the tunnel programs that this process started. They outlive it otherwise, and lead to whatever takes the port next."""
    for tunnel in _tunnels():
        process, tunnel.proc = tunnel.proc, None  # Tunnel.kill would print to the terminal
        if process is not None:
            process.terminate()


def _tunnels() -> "list[Tunnel]":
    tunneling = sys.modules.get("gradio.tunneling")  # not imported: there are none
    return list(tunneling.CURRENT_TUNNELS) if tunneling else []


def _drop_altered_client(tunneling: ModuleType) -> None:
    """Delete a tunnel program that is not the published one.

    Gradio compares checksums only right after a download, and leaves what does not match where it runs it from next time.
    """
    binary = Path(tunneling.BINARY_PATH)
    expected = tunneling.CHECKSUMS.get(tunneling.BINARY_URL)
    if expected is not None and binary.is_file() and hashlib.sha256(binary.read_bytes()).hexdigest() != expected:
        binary.unlink()


def _failure(error: Exception, tunneling: ModuleType) -> Failure:
    import httpx
    from gradio.exceptions import ChecksumMismatchError, ShareCertificateWriteError

    if isinstance(error, ChecksumMismatchError):
        _drop_altered_client(tunneling)
        return Failure("share.tampered")
    if isinstance(error, ShareCertificateWriteError):
        return Failure("share.cannot_write", path=tunneling.CERTIFICATE_PATH)
    if isinstance(error, RuntimeError):  # setup_tunnel: the address of the share server
        reached = not isinstance(error.__cause__, httpx.TransportError)
        return Failure("share.service_down" if reached else "share.no_network")
    if isinstance(error, httpx.HTTPError):  # download_binary
        return Failure("share.no_client", host=urlsplit(tunneling.BINARY_URL).hostname)
    if isinstance(error, OSError) and error.errno is not None:
        return Failure("share.cannot_write", path=tunneling.BINARY_FOLDER)
    if isinstance(error, OSError):  # download_binary: "this platform is incompatible"
        return Failure("share.platform", machine=f"{platform.system()} {platform.machine()}")
    return Failure("share.blocked")
