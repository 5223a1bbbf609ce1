"""A request as a line for a shell, to repeat what failed. The key is never in it. Pure."""

import json
import shlex

from kimi_demo.qa.attempt import Attempt

KEY_VARIABLE = "KIMI_DEMO_API_KEY"
SOMEWHERE = "https://SERVER/v1"
"""In place of an address that is not told."""


def curls(address: str, seen: Attempt) -> list[str]:
    """Every request of an attempt; `address` is the server's base URL, with /v1."""
    return [curl(address, each.request) for each in seen.rounds if each.request]


def curl(address: str, body: dict[str, object]) -> str:
    """The body is a here-document: nothing in it is expanded, and no line of JSON can be its end mark."""
    route = "/completions" if "prompt" in body else "/chat/completions"
    return (
        f"curl -sS -N {shlex.quote(address.rstrip('/') + route)} \\\n"
        f"  -H 'Content-Type: application/json' -H \"Authorization: Bearer ${KEY_VARIABLE}\" \\\n"
        f"  --data-binary @- <<'JSON'\n{json.dumps(body, ensure_ascii=False, indent=1)}\nJSON\n"
    )
