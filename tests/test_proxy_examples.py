"""The examples of docs/proxy as they stand (names, ports and certificate apart), in front of a page: TLS, HTTP/2, streams as they come.

They need nginx and Caddy, which are no packages of ours: `make soak` runs them, and says which of the two is not there.
"""

import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port
from tests.programs import ROOT, Program, running

STUB = str(ROOT / "tests" / "ui" / "stub_page.py")
NAME = "demo.example.org"
pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """demo.pem and demo.key in a folder."""
    folder = tmp_path_factory.mktemp("certificate")
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout demo.key -out demo.pem -days 2 -subj /CN={NAME}".split()
    subprocess.run([*command, "-addext", f"subjectAltName=DNS:{NAME}"], cwd=folder, check=True, capture_output=True)
    return folder


def nginx(folder: Path, certificate: Path, port: int, page: int) -> list[str]:
    text = (ROOT / "docs/proxy/nginx.conf").read_text()
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:7860", f"127.0.0.1:{page}")
    text = text.replace("/etc/ssl/", f"{certificate}/").replace("http {", f"http {{ access_log off; client_body_temp_path {folder};", 1)
    (folder / "nginx.conf").write_text(f"pid {folder}/nginx.pid; daemon off; error_log stderr;\n{text}")
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, certificate: Path, port: int, page: int) -> list[str]:
    text = (ROOT / "docs/proxy/Caddyfile").read_text()
    text = text.replace("127.0.0.1:7860", f"127.0.0.1:{page}").replace(
        "{\n\tservers", "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers"
    )
    text = text.replace(f"{NAME} {{", f"{NAME}:{port} {{\n\ttls {certificate}/demo.pem {certificate}/demo.key")
    (folder / "Caddyfile").write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@contextmanager
def proxied(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        while process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        assert process.poll() is None, process.communicate()[0].decode()
        yield
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@pytest.mark.parametrize("example", [nginx, caddy], ids=["nginx", "caddy"])
def test_the_example_speaks_tls_and_http_2_and_holds_nothing_back(example: object, certificate: Path, tmp_path: Path) -> None:
    make = nginx if example is nginx else caddy
    if shutil.which(make.__name__) is None:
        pytest.skip(f"{make.__name__} is not installed")
    flags = ["--port", "0", "--public", "--open", "--allowed-hosts", NAME, "--trusted-proxies", "127.0.0.1"]
    with running(STUB, *flags, cwd=tmp_path) as program:
        page = int(program.wait_for(r"http://127\.0\.0\.1:(\d+)/")[1])
        program.tell("go")
        program.wait_for("alive")
        port = free_port()
        with proxied(make(tmp_path, certificate, port, page), port):
            _through(program, certificate, port)
        program.signal(signal.SIGTERM)
        program.wait_for("closing")
        program.tell("close")
        assert program.ended()[0] == 0


def _through(program: Program, certificate: Path, port: int) -> None:
    trust = ssl.create_default_context(cafile=str(certificate / "demo.pem"))
    trust.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", port)) as raw, trust.wrap_socket(raw, server_hostname=NAME) as spoken:
        assert spoken.selected_alpn_protocol() == "h2"
    trust = ssl.create_default_context(cafile=str(certificate / "demo.pem"))
    with httpx.Client(verify=trust, base_url=f"https://127.0.0.1:{port}", headers={"host": NAME}, timeout=20) as browser:
        name = {"sni_hostname": NAME}
        answer = browser.get("/", extensions=name, headers={"origin": f"https://{NAME}"})
        assert answer.text == "the page" and answer.headers["x-frame-options"] == "DENY"
        assert browser.get("/", extensions=name, headers={"origin": "https://evil.example"}).status_code == 403
        refused = browser.post("/kimi/x", extensions=name, content=b"x" * 13_000_000)
        assert refused.status_code in (413, 502)  # Caddy before 2.7 calls it the page's fault
        with browser.stream("GET", "/kimi/stream", extensions=name) as stream:
            assert next(stream.iter_raw()) == b"first"  # while the page goes on writing
        program.wait_for("stream ended")  # whoever leaves the proxy has left the page
