"""What can go wrong on the way to a public link, each in its own words. The share service is one of ours, on a local port."""

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import gradio.networking as networking
import gradio.tunneling as tunneling
import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.settings import Settings
from kimi_demo.ui.share import close_share_links, open_share_link
from kimi_demo.ui.texts import texts

SETTINGS = Settings(auth="ann:hunter2")


class Service:
    """Answers api.gradio.app's question, and serves the tunnel program, as a test wants it."""

    def __init__(self) -> None:
        self.status, self.body = 200, json.dumps([{"host": "127.0.0.1", "port": 7000, "root_ca": "certificate"}]).encode()
        self.binary_status, self.binary = 200, b""
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                program = self.path == "/frpc"
                body = service.binary if program else service.body
                self.send_response(service.binary_status if program else service.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def program(self, source: str) -> None:
        """Offer a tunnel program with this Python source, under its right checksum."""
        self.binary = f"#!{sys.executable}\n{source}\n".encode()
        tunneling.CHECKSUMS[f"{self.url}/frpc"] = hashlib.sha256(self.binary).hexdigest()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Service]:
    made = Service()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(networking, "GRADIO_API_SERVER", made.url)
    monkeypatch.setattr(networking, "GRADIO_SHARE_SERVER_ADDRESS", None)
    monkeypatch.setattr(tunneling, "BINARY_URL", f"{made.url}/frpc")
    monkeypatch.setattr(tunneling, "BINARY_FOLDER", tmp_path / "frpc")
    monkeypatch.setattr(tunneling, "BINARY_PATH", str(tmp_path / "frpc" / "client"))
    monkeypatch.setattr(tunneling, "CHECKSUMS", dict(tunneling.CHECKSUMS))
    monkeypatch.setattr(tunneling, "CURRENT_TUNNELS", [])
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield made
    close_share_links()
    made.close()


def failure() -> Failure:
    with pytest.raises(Failure) as caught:
        open_share_link(SETTINGS, 7860)
    for language in ("en", "zh"):
        assert "{" not in texts(language).sentence(caught.value)
    return caught.value


def test_the_link_is_the_one_that_the_tunnel_reports(service: Service, tmp_path: Path) -> None:
    service.program(
        "import sys, time\nopen('arguments', 'w').write(' '.join(sys.argv))\n"
        "print('start proxy success: https://abc.gradio.live', flush=True)\ntime.sleep(60)"
    )
    assert open_share_link(SETTINGS, 7861) == "https://abc.gradio.live"
    told = (tmp_path / "arguments").read_text()
    assert "-l 7861 -i 127.0.0.1" in told and "--tls_enable" in told and "hunter2" not in told
    (tunnel,) = tunneling.CURRENT_TUNNELS
    process = tunnel.proc
    assert process is not None and process.poll() is None
    close_share_links()
    assert process.wait(10) == -signal.SIGTERM


def test_without_a_password_there_is_no_link(service: Service) -> None:
    with pytest.raises(Failure) as caught:
        open_share_link(Settings(), 7860)
    assert caught.value.code == "access.share_without_auth"


def test_no_network(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networking, "GRADIO_API_SERVER", "http://127.0.0.1:9")
    assert failure().code == "share.no_network"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'[{"host": "a"}]'])
def test_an_answer_of_no_use(service: Service, body: bytes) -> None:
    service.body = body
    assert failure().code == "share.service_down"


def test_the_tunnel_program_cannot_be_had(service: Service) -> None:
    service.binary_status = 502
    assert failure().code == "share.no_client"


def test_there_is_none_for_this_machine(service: Service) -> None:
    service.binary_status = 403
    assert failure().code == "share.platform"


def test_an_altered_program_is_deleted_and_never_started(service: Service, tmp_path: Path) -> None:
    service.program("open('started', 'w')")
    service.binary += b"# altered"
    assert failure().code == "share.tampered"
    assert not Path(tunneling.BINARY_PATH).exists() and not (tmp_path / "started").exists()


def test_an_altered_program_left_by_an_earlier_start_is_fetched_anew(service: Service, tmp_path: Path) -> None:
    service.program("print('start proxy success: https://abc.gradio.live', flush=True)")
    left = Path(tunneling.BINARY_PATH)
    left.parent.mkdir()
    left.write_text(f"#!{sys.executable}\nopen('started', 'w')\n")
    left.chmod(0o700)
    assert open_share_link(SETTINGS, 7860) == "https://abc.gradio.live"
    assert left.read_bytes() == service.binary and not (tmp_path / "started").exists()


def test_a_tunnel_that_is_turned_away(service: Service) -> None:
    service.program("print('login to server failed: i/o timeout', flush=True)")
    assert failure().code == "share.blocked"


def test_a_place_that_cannot_be_written(service: Service, tmp_path: Path) -> None:
    (tmp_path / ".gradio").write_text("a file where the folder should be")
    refused = failure()
    assert refused.code == "share.cannot_write" and refused.params["path"] == os.path.join(".gradio", "certificate.pem")
