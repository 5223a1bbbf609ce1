import asyncio

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.request_label import REQUEST_LABEL, request_headers
from tests import scripted_server


def test_outside_of_runs_there_is_none_and_inside_each_has_its_own_number() -> None:
    assert request_headers() == {}
    token = REQUEST_LABEL.set("a" * 32)
    try:
        one, two = request_headers(), request_headers()
    finally:
        REQUEST_LABEL.reset(token)
    assert one != two and all(found["X-Request-Id"].startswith("a" * 32 + "-") for found in (one, two))


async def _ask(endpoint: Endpoint, label: str) -> None:
    REQUEST_LABEL.set(label)
    async for _ in endpoint.stream(ChatRequest([user("hi")], Sampling(max_tokens=16), True)):
        pass


async def test_a_vllm_server_is_told_and_no_other() -> None:
    for owner, told in (("vllm", True), ("somebody", False)):
        with scripted_server.running(owned_by=owner, missing=set() if told else {"/version"}) as server:
            endpoint = await Endpoint.connect(server.base_url)
            await asyncio.gather(_ask(endpoint, "b" * 32), _ask(endpoint, "c" * 32))
            await endpoint.aclose()
            found = sorted(request.headers.get("x-request-id", "")[:32] for request in server.chats)
            assert found == (["b" * 32, "c" * 32] if told else ["", ""])
            # Without a key, the SDK must still send none.
            assert all("authorization" not in request.headers for request in server.chats)
