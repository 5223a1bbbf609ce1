"""Whether closing a request really stops the work: the server's count of running requests goes down again."""

import asyncio
import time
from contextlib import aclosing

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import AnswerDelta, ThoughtDelta
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.metrics.reading import read_metrics

_ABORT_S = 20.0
"""Aborts took 0.1 to 0.7 s in decoding, and the rest of a prefill chunk (2 s) in prefill, on a CPU under load."""

_LOOK_S = 0.05
_ATTEMPTS = 3
_LONG = "Write a long story about a lighthouse, with as many details as you can."


async def stop_aborts(endpoint: Endpoint) -> dict[str, str]:
    """Facts: "seconds" until the request was gone. With other people's requests on the server: until no more run than before.

    Raises Failure: check.no_metrics, check.stop_ignored, check.stop_unclear (every reply was over before it could be stopped).
    """
    for _ in range(_ATTEMPTS):
        before = await running(endpoint)
        if before is None:
            raise Failure("check.no_metrics")
        if await _begun_and_closed(endpoint, before):
            return {"seconds": f"{await _gone_after(endpoint, before):.2f}"}
    raise Failure("check.stop_unclear")


async def running(endpoint: Endpoint) -> float | None:
    """Requests in work on the server; None where it does not say."""
    text = await endpoint.metrics()
    try:
        return None if text is None else read_metrics(text).running
    except Failure:
        return None


async def _begun_and_closed(endpoint: Endpoint, before: float) -> bool:
    """Whether a request was closed while the server was working on it."""
    room = endpoint.info.max_model_len or 2048
    request = ChatRequest([user(_LONG)], Sampling(temperature=1.0, max_tokens=max(16, min(2048, room // 2))), thinking=True)
    async with aclosing(endpoint.stream(request)) as events:
        async for event in events:
            if isinstance(event, ThoughtDelta | AnswerDelta):
                return (await running(endpoint) or 0.0) > before
    return False


async def _gone_after(endpoint: Endpoint, before: float) -> float:
    began = time.monotonic()
    while time.monotonic() - began < _ABORT_S:
        now = await running(endpoint)
        if now is not None and now <= before:
            return time.monotonic() - began
        await asyncio.sleep(_LOOK_S)
    raise Failure("check.stop_ignored", seconds=f"{_ABORT_S:g}")
