"""The HTTP client under an endpoint: what it waits for, what it never does."""

from typing import TYPE_CHECKING, Any, cast

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint_failures import Where
from kimi_demo.engines.endpoint_url import is_loopback

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from openai import AsyncOpenAI


def usable_key(typed: str | None) -> str | None:
    """The API key as it goes into a header; None for none. Raises `Failure("endpoint.key_malformed")` where a header cannot carry it."""
    key = (typed or "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise Failure("endpoint.key_malformed")
    return key or None


def make_http(where: Where) -> "AsyncClient":
    """An HTTP client that follows no redirects (one would carry the key elsewhere) and asks no proxy for a loopback address."""
    import httpx2

    return httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {where.secret}"} if where.secret else {},
        follow_redirects=False,
        trust_env=not is_loopback(where.address),
        timeout=httpx2.Timeout(where.silence_timeout_s, connect=where.connect_timeout_s, write=60.0, pool=None),
        # uvicorn, and so vLLM, closes an idle connection after 5 s: let go earlier, so that no request meets one that is just closing.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=2.0),
    )


def make_client(http: "AsyncClient", where: Where) -> "AsyncOpenAI":
    """The openai SDK on top of `http`. No retries: a second request would think the same thought again, unseen."""
    from openai import AsyncOpenAI, Omit

    # Every credential is given here, or the SDK would take OpenAI's own from the environment and hand them to this server.
    return AsyncOpenAI(
        base_url=where.address,
        api_key=where.secret or "none",
        max_retries=0,
        timeout=http.timeout,
        http_client=http,
        default_headers=cast(Any, {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}),
    )


def request_options(where: Where) -> dict[str, Any]:
    """The SDK's `options` of every request: without a key, no Authorization header (which the SDK wants said each time)."""
    from openai import Omit

    return {} if where.secret else {"headers": {"Authorization": Omit()}}
