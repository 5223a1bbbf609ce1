"""What the three kinds of run do. Each appends its events to the run it is given and raises Failure when it cannot go on."""

from collections.abc import Sequence
from contextlib import aclosing

from kimi_demo.dialect.conversation import ChatRequest, Message
from kimi_demo.dialect.events import RoundStarted
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.offline import OfflineEngine
from kimi_demo.engines.room import fit
from kimi_demo.runs.run import Run
from kimi_demo.tools.rounds import converse
from kimi_demo.tools.toolbox import Toolbox


async def chat(run: Run, engine: ChatEngine, request: ChatRequest) -> None:
    """One reply, streamed."""
    endpoint = await engine.ready(run.append)
    request = await fit(request, endpoint)
    run.append(RoundStarted(0, request=endpoint.body(request)))
    async with aclosing(endpoint.stream(request)) as events:
        async for event in events:
            run.append(event)


async def use_tools(run: Run, engine: ChatEngine, request: ChatRequest, toolbox: Toolbox, *, max_rounds: int) -> None:
    """Rounds of thought, calls and results until the model answers."""
    endpoint = await engine.ready(run.append)
    fitted = await fit(request, endpoint)
    await converse(
        endpoint, list(fitted.messages), toolbox, fitted.sampling, thinking=fitted.thinking, emit=run.append, max_rounds=max_rounds
    )


async def batch(
    run: Run, engine: OfflineEngine, lease: Lease, rows: Sequence[Sequence[Message]], sampling: Sampling, *, thinking: bool, takeover: bool
) -> None:
    """Every row through the in-process engine, loading it first when needed.

    takeover: whether the chat server may be stopped for it where both want the same GPUs.
    """
    await lease.acquire("batch", engine.unload, takeover=takeover)
    try:
        await engine.load(run.append)
        await engine.generate(rows, sampling, thinking, run.append)
    except Failure:
        if engine.state not in ("loading", "ready"):  # it has nothing on the GPUs: do not keep the chat from them
            lease.release("batch")
        raise
