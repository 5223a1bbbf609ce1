"""Stands in for the vLLM server where its failures are tested: python fake_vllm.py SCENARIO [LOG] --port N

Writes LOG, then does as the scenario says. It has a child of its own, as vLLM has: `sleep`, which outlives its parent.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    any_key = False

    def do_GET(self) -> None:
        allowed = self.any_key or self.path == "/health" or self.headers.get("Authorization") == f"Bearer {os.environ['VLLM_API_KEY']}"
        self.send_response(200 if allowed else 401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        print("INFO: ", format % args, flush=True)


def serve(port: int) -> None:
    """Ready at once. Obeys SIGTERM, but leaves its child."""
    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


def orphaning(port: int) -> None:
    """Serves; its engine does not hear SIGTERM, as vLLM's once its API server is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    serve(port)


def crash(port: int) -> None:
    """Ends with status 1, as vLLM does."""
    sys.exit(1)


def stubborn(port: int) -> None:
    """Never ready, and deaf to SIGTERM, as vLLM is while it starts; so is its child."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"])
    print("deaf", flush=True)
    time.sleep(1000)


def killed(port: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def unlucky(port: int) -> None:
    """Finds its port taken on the first start in this folder, and serves on the second."""
    mark = Path("taken")
    if mark.exists():
        serve(port)
    mark.write_text(str(port))
    print("OSError: [Errno 98] Address already in use", flush=True)
    sys.exit(1)


def foreign(port: int) -> None:
    """Answers at the port, but takes any key: somebody else's server. Then our own (this process) ends."""
    Handler.any_key = True
    server = HTTPServer(("127.0.0.1", port), Handler)
    for _ in range(6):
        server.handle_request()
    print("RuntimeError: that was not yours", flush=True)
    sys.exit(1)


def bar(port: int) -> None:
    """Shows a progress bar without an end, and waits."""
    sys.stderr.write("\rCapturing CUDA graphs (decode, FULL):  20%|##        | 7/35 [00:01<00:04,  6.62it/s]")
    sys.stderr.flush()
    time.sleep(1000)


SCENARIOS: dict[str, Callable[[int], None]] = {
    scenario.__name__: scenario for scenario in (serve, orphaning, crash, stubborn, killed, unlucky, foreign, bar)
}

if __name__ == "__main__":
    scenario, *log, _, port = sys.argv[1:]
    for path in log:
        sys.stdout.write(Path(path).read_text(encoding="utf-8"))
        sys.stdout.flush()
    print("child", subprocess.Popen(["sleep", "1000"]).pid, flush=True)
    SCENARIOS[scenario](int(port))
