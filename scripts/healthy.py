"""Whether the page answers and is built: exit code 0 or 1, for a container's health check."""

import json
import os
import sys
import urllib.request


def is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=4) as answer:
            return bool(json.load(answer).get("status") == "ready")
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.exit(0 if is_healthy(int(os.environ.get("KIMI_DEMO_PORT") or 7860)) else 1)
