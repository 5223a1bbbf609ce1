"""What each kind of run does, beyond what its engine does."""

import pytest

from kimi_demo.dialect.conversation import user
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.offline import Emit, OfflineEngine
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.runs.run import Run
from kimi_demo.tasks import batch


async def test_a_batch_engine_that_cannot_load_does_not_keep_the_gpus_from_the_chat() -> None:
    async def no_memory(on_event: Emit) -> OfflineLaunch:
        raise Failure("batch.out_of_memory")

    async def stop() -> None:
        raise AssertionError("nobody is asked to give way")

    lease, engine = Lease(), OfflineEngine(no_memory)
    run = Run(owner="me", kind="batch", title="t")
    try:
        with pytest.raises(Failure, match="batch.out_of_memory"):
            await batch(run, engine, lease, [[user("a")]], Sampling(max_tokens=1), thinking=False, takeover=False)
        assert engine.state == "failed"
        await lease.acquire("chat", stop)
        with pytest.raises(Failure) as caught:
            await batch(run, engine, lease, [[user("a")]], Sampling(max_tokens=1), thinking=False, takeover=False)
        assert caught.value.code == "accelerators.held" and lease.holders == {"chat"}
    finally:
        await engine.close()
