"""What a server says of itself: its models, its kind, and whether its template opens the thought."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint_failures import Where, failure_of
from kimi_demo.engines.endpoint_kind import Kind, kind_by_name
from kimi_demo.engines.endpoint_url import root_of
from kimi_demo.engines.port import ModelInfo
from kimi_demo.engines.thought_stream import THOUGHT_START

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response


@dataclass(frozen=True)
class Served:
    """The models that a server lists, the chosen one, and its `owned_by`."""

    models: tuple[ModelInfo, ...]
    info: ModelInfo
    owner: str


async def ask_models(http: "AsyncClient", where: Where, wanted: str | None) -> Served:
    """Reads `/models`, within `where.connect_timeout_s`. Raises `Failure`."""
    import httpx2
    from openai import APIStatusError

    address = where.address
    try:
        async with asyncio.timeout(where.connect_timeout_s * 2):
            response = await http.get(f"{address}/models", timeout=where.connect_timeout_s)
        if not response.is_success:
            raise APIStatusError(f"status {response.status_code}", response=response, body=_json(response))
    except TimeoutError:
        raise Failure("endpoint.connect_timeout", address=address, seconds=f"{where.connect_timeout_s:g}") from None
    except httpx2.ReadTimeout:
        raise Failure("endpoint.silent", address=address, seconds=f"{where.connect_timeout_s:g}") from None
    except Exception as error:
        raise failure_of(error, where) from None
    if "html" in response.headers.get("content-type", ""):
        raise Failure("endpoint.web_page", address=address)
    listed = _json(response)
    cards = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(cards, list):
        raise Failure("endpoint.not_openai", address=address)
    cards = [card for card in cards if isinstance(card, dict) and isinstance(card.get("id"), str)]
    if not cards:
        raise Failure("endpoint.no_models", address=address)
    chosen = cards[0] if wanted is None else next((card for card in cards if card["id"] == wanted), None)
    if chosen is None:
        raise Failure("endpoint.model_not_listed", model=wanted, models=where.clean(", ".join(card["id"] for card in cards)))
    return Served(tuple(map(_info, cards)), _info(chosen), str(chosen.get("owned_by") or ""))


async def ask_kind(http: "AsyncClient", where: Where, served: Served) -> Kind:
    """vllm, moonshot or openai: by address and owner, otherwise by whether /version answers as vLLM's does."""
    named = kind_by_name(where.address, [served.owner])
    if named is not None:
        return named
    version = await _aside(http, where, "GET", "/version")
    return "vllm" if isinstance(version, dict) and isinstance(version.get("version"), str) else "openai"


async def opens_thought(http: "AsyncClient", where: Where, served: Served) -> bool | None:
    """Whether the prompt of a thinking request ends in `<think>`, by vLLM's /tokenize; None where that is not offered."""
    body = {
        "model": served.info.id,
        "messages": [{"role": "user", "content": "hi"}],
        "chat_template_kwargs": {"thinking": True},
        "return_token_strs": True,
    }
    reply = await _aside(http, where, "POST", "/tokenize", body)
    tokens = reply.get("token_strs") if isinstance(reply, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    # Byte-level vocabularies write a space as Ġ and a newline as Ċ.
    return "".join(map(str, tokens[-8:])).rstrip(" \nĠĊ").endswith(THOUGHT_START)


async def has_completions(http: "AsyncClient", where: Where) -> bool:
    """Whether the server has text completions. Asked with GET, which starts nothing: only "no such route" (404) says no."""
    import httpx2

    try:
        response = await http.request("GET", f"{where.address}/completions", timeout=where.connect_timeout_s)
    except httpx2.HTTPError:
        return False
    return bool(response.status_code != 404)


async def _aside(http: "AsyncClient", where: Where, method: str, route: str, body: Any = None) -> Any:
    """The JSON answer to a question that a server need not know; None where there is none."""
    import httpx2

    try:
        response = await http.request(method, root_of(where.address) + route, json=body, timeout=where.connect_timeout_s)
    except httpx2.HTTPError:
        return None
    return _json(response) if response.is_success else None


def _json(response: "Response") -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _info(card: dict[str, Any]) -> ModelInfo:
    length, root = card.get("max_model_len"), card.get("root")
    return ModelInfo(card["id"], length if isinstance(length, int) else None, root if isinstance(root, str) else None)
