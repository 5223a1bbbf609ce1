"""The batch engine on real vLLM with the stand-in model. One load serves most tests; the last two end it and load again."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kimi_demo.dialect.conversation import Message
from kimi_demo.dialect.events import BatchProgress, BatchStarted, Event, Phase, RowFinished
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline import OfflineEngine
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.offline_log import read_log
from kimi_demo.engines.offline_rows import BatchRow, RowAsk

CONTEXT = 2048
AT_ONCE = 24
GUIDE = "给我一个关于大模型的简短介绍。"
GREEDY = Sampling(temperature=0.0, top_p=1.0, max_tokens=24)


@pytest.fixture(scope="module")
def loaded(stand_in: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OfflineEngine, list[Event], Path]]:
    """The engine, what it told while it loaded, and vLLM's log."""
    log = tmp_path_factory.mktemp("batch") / "logs" / "batch-engine.log"
    launch = OfflineLaunch(str(stand_in), log, max_model_len=CONTEXT, vllm_args=f"--max-num-seqs {AT_ONCE} --enable-auto-tool-choice")
    engine = OfflineEngine(launch)
    told: list[Event] = []

    async def load() -> None:
        assert state_of(engine) == "unloaded"
        impatient = asyncio.create_task(engine.load(lambda event: None))
        waiting = asyncio.gather(engine.load(told.append), engine.load(lambda event: None))
        await asyncio.sleep(0)
        assert state_of(engine) == "loading"
        impatient.cancel()
        await waiting
        assert impatient.cancelled()

    asyncio.run(load())
    yield engine, told, log
    asyncio.run(engine.close())


@pytest.fixture
def engine(loaded: tuple[OfflineEngine, list[Event], Path]) -> OfflineEngine:
    return loaded[0]


async def run(engine: OfflineEngine, rows: list[BatchRow], sampling: Sampling = GREEDY, *, thinking: bool = True) -> list[Event]:
    events: list[Event] = []
    await engine.generate(rows, sampling, thinking, events.append)
    return events


def finished(events: list[Event]) -> list[RowFinished]:
    """The rows, by index; each must be there once."""
    rows = sorted((event for event in events if isinstance(event, RowFinished)), key=lambda row: row.index)
    assert [row.index for row in rows] == list(range(len(rows)))
    return rows


def vllm_processes() -> list[psutil.Process]:
    """EngineCore and workers below this process."""
    return [
        child for child in psutil.Process().children(recursive=True) if "VLLM::" in " ".join(child.cmdline()) or child.name() == "VLLM::"
    ]


def state_of(engine: OfflineEngine) -> str:
    return engine.state


def text_of(row: RowFinished) -> str:
    return (row.reasoning or "") + "|" + row.answer


def test_loading_tells_its_phases_and_vllms_own_words_go_to_the_log(loaded: tuple[OfflineEngine, list[Event], Path]) -> None:
    engine, told, log = loaded
    phases = [event for event in told if isinstance(event, Phase)]
    names = [phase.name for phase in phases]
    assert names[:2] == ["batch.checking", "batch.importing"] and names[-1] == "batch.ready"
    assert {"server.reading_model", "server.loading_weights", "server.kv_cache"} <= set(names)
    assert Phase("server.loading_weights", 1, 1) in phases
    assert state_of(engine) == "ready" and engine.failure is None and engine.phase is None
    lines = read_log(log)
    assert any("EngineCore pid=" in line for line in lines) and any("shards: 100%" in line for line in lines)
    # Nothing that was set for vLLM stays in the environment that other child processes inherit.
    assert "VLLM_CPU_KVCACHE_SPACE" not in os.environ or os.environ["VLLM_CPU_KVCACHE_SPACE"] != "1"


async def test_loading_again_does_nothing(engine: OfflineEngine) -> None:
    before = {process.pid for process in vllm_processes()}
    told: list[Event] = []
    await engine.load(told.append)
    assert told == [] and {process.pid for process in vllm_processes()} == before and len(before) == 2


async def test_every_row_is_an_event_as_soon_as_it_is_done_and_the_counts_are_exact(engine: OfflineEngine) -> None:
    rows: list[BatchRow] = [f"Say the number {number}." for number in range(40)]
    arrived: list[float] = []

    def emit(event: Event) -> None:
        events.append(event)
        arrived.append(time.monotonic())

    events: list[Event] = []
    sampling = Sampling(temperature=1.0, max_tokens=40, seed=7)
    await engine.generate(rows, sampling, True, emit)
    assert events[0] == BatchStarted(40)
    done = finished(events)
    assert len(done) == 40 and [row.prompt for row in done] == rows
    assert all(row.error is None and 1 <= row.completion_tokens <= 40 and row.prompt_tokens > 5 and row.seconds > 0 for row in done)
    progress = [event for event in events if isinstance(event, BatchProgress)]
    assert progress[-1] == events[-1] == BatchProgress(40, 0, 0, sum(row.completion_tokens for row in done))
    assert all(step.done + step.running + step.waiting == 40 for step in progress)
    assert [step.generated_tokens for step in progress] == sorted(step.generated_tokens for step in progress)
    assert AT_ONCE // 2 < max(step.running for step in progress) <= AT_ONCE
    times = [at for at, event in zip(arrived, events, strict=True) if isinstance(event, BatchProgress)]
    assert all(later - earlier > 0.2 for earlier, later in zip(times[:-2], times[1:-1], strict=True))
    first = next(at for at, event in zip(arrived, events, strict=True) if isinstance(event, RowFinished))
    assert arrived[-1] - first > 0.5, f"{AT_ONCE} rows compute at once, so the first of 40 must be there well before the last"


async def test_thinking_is_switched_by_the_template(engine: OfflineEngine) -> None:
    thinking = finished(await run(engine, [GUIDE]))[0]
    instant = finished(await run(engine, [GUIDE], thinking=False))[0]
    assert thinking.reasoning is not None and instant.reasoning is None
    assert instant.answer and "</think>" not in instant.answer
    # The prompt ends with "<think>" or with "<think></think>".
    assert instant.prompt_tokens == thinking.prompt_tokens + 1


async def test_a_chinese_prompt_and_a_conversation(engine: OfflineEngine) -> None:
    conversation: list[Message] = [
        {"role": "user", "content": "My name is Ann."},
        {"role": "assistant", "content": "Hello Ann."},
        {"role": "user", "content": GUIDE},
    ]
    alone, talk = finished(await run(engine, [GUIDE, conversation]))
    assert alone.prompt == talk.prompt == GUIDE and talk.prompt_tokens > alone.prompt_tokens
    assert alone.error is None and alone.completion_tokens > 0


async def test_cut_off_in_thought_is_no_answer(engine: OfflineEngine) -> None:
    row = finished(await run(engine, ["Tell me a long story."], Sampling(temperature=0.0, max_tokens=3)))[0]
    assert (row.finish_reason, row.completion_tokens, row.answer) == ("length", 3, "")
    assert row.reasoning


async def test_a_seed_repeats_and_equal_prompts_still_differ(engine: OfflineEngine) -> None:
    rows: list[BatchRow] = ["Write a line of a poem."] * 4
    seeded = Sampling(temperature=2.0, top_p=1.0, max_tokens=24, seed=11)  # the trained stand-in is sure of itself
    first = [text_of(row) for row in finished(await run(engine, rows, seeded))]
    again = [text_of(row) for row in finished(await run(engine, rows, seeded))]
    other = [text_of(row) for row in finished(await run(engine, rows, seeded.model_copy(update={"seed": 12345})))]
    assert first == again and len(set(first)) > 1 and other != first


async def test_the_text_is_llm_chats_own(engine: OfflineEngine) -> None:
    prompts = ["Hello", GUIDE, "What is the capital of France?"]

    def chat(llm: Any) -> list[tuple[str, int, int]]:
        from vllm import SamplingParams

        params = SamplingParams(temperature=0.0, top_p=1.0, max_tokens=24)
        asked = [[{"role": "user", "content": prompt}] for prompt in prompts]
        outputs = llm.chat(asked, params, use_tqdm=False, chat_template_kwargs={"thinking": False})
        return [(out.outputs[0].text, len(out.outputs[0].token_ids), len(out.prompt_token_ids)) for out in outputs]

    expected = await engine.with_llm(chat)
    rows = finished(await run(engine, list(prompts), thinking=False))
    assert [(row.answer, row.completion_tokens, row.prompt_tokens) for row in rows] == expected


def tokens_of(text: str, thinking: bool = True) -> Callable[[Any], int]:
    """How many tokens the prompt of a user's `text` has, by the tokenizer's own template."""

    def count(llm: Any) -> int:
        tokenizer = llm.get_tokenizer()
        rendered = tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True, thinking=thinking
        )
        return len(tokenizer.encode(rendered, add_special_tokens=False))

    return count


async def test_seeded_rows_with_long_prompts_do_not_kill_the_engine(engine: OfflineEngine) -> None:
    """Together they are longer than a step of the engine; on a CPU, a seeded prompt that is read in parts ends vLLM 0.32."""
    rows: list[BatchRow] = [f"{number} " + "stone " * (CONTEXT - 100) for number in range(4)]
    done = finished(await run(engine, rows, Sampling(temperature=1.0, max_tokens=2, seed=1)))
    assert [row.error for row in done] == [None] * 4 and all(row.prompt_tokens > CONTEXT - 100 for row in done)


async def test_a_row_that_does_not_fit_stops_no_other_and_max_tokens_gives_way_to_the_context(engine: OfflineEngine) -> None:
    word = " stone"
    base = await engine.with_llm(tokens_of(word))
    fits = word * (CONTEXT - base - 4)  # leaves five tokens of room
    exact = word * (CONTEXT - base + 1)  # leaves none
    assert await engine.with_llm(tokens_of(fits)) == CONTEXT - 5 and await engine.with_llm(tokens_of(exact)) == CONTEXT
    long = "x " * 100_000
    # At temperature 2 no reply ends by itself within five tokens, but for one in thousands; the seed keeps it that way.
    rows = finished(await run(engine, [exact, fits, long, "Hello"], Sampling(temperature=2.0, top_p=1.0, max_tokens=20, seed=1)))
    none, tight, huge, hello = rows
    assert (none.error, none.error_params) == ("batch.prompt_too_long", {"tokens": str(CONTEXT), "limit": str(CONTEXT)})
    counted = await engine.with_llm(tokens_of(long))
    assert (huge.error, huge.error_params) == ("batch.prompt_too_long", {"tokens": str(counted), "limit": str(CONTEXT)})
    assert (tight.error, tight.prompt_tokens, tight.completion_tokens, tight.finish_reason) == (None, CONTEXT - 5, 5, "length")
    assert hello.error is None and hello.completion_tokens > 0


async def test_an_empty_list_is_done_at_once(engine: OfflineEngine) -> None:
    assert await run(engine, []) == [BatchStarted(0), BatchProgress(0, 0, 0, 0)]


async def test_an_impossible_row_says_what_vllm_says(engine: OfflineEngine) -> None:
    bad: BatchRow = [{"role": "user", "content": [{"type": "no_such_part"}]}]
    rejected, fine = finished(await run(engine, [bad, "Hello"]))
    assert rejected.error == "batch.row_rejected" and rejected.error_params["reason"]
    assert fine.error is None


async def test_cancelling_frees_the_engine_at_once(engine: OfflineEngine) -> None:
    events: list[Event] = []
    writing = asyncio.Event()

    def emit(event: Event) -> None:
        events.append(event)
        if isinstance(event, BatchProgress) and event.running > AT_ONCE // 2:
            writing.set()

    endless = Sampling(temperature=2.0, top_p=1.0, max_tokens=1500, seed=3)
    task = asyncio.create_task(engine.generate(["Go on and on."] * 100, endless, True, emit))
    await asyncio.wait_for(writing.wait(), 60)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 1
    told = len(events)
    assert await engine.with_llm(lambda llm: llm.llm_engine.get_num_unfinished_requests()) == 0
    row = finished(await run(engine, ["Hello"], Sampling(temperature=0.0, max_tokens=4)))[0]
    # One cancelled row alone would have needed 1500 steps.
    assert time.monotonic() - began < 10 and row.completion_tokens <= 4
    assert len(events) == told


async def test_cancelling_does_not_wait_for_a_long_step(engine: OfflineEngine) -> None:
    """While prompts are read, seconds pass without an output; the engine's thread must not be stuck in that wait."""
    started = asyncio.Event()
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        started.set()

    prompts: list[BatchRow] = [f"{number} " + "stone " * 1500 for number in range(24)]
    task = asyncio.create_task(engine.generate(prompts, GREEDY, True, emit))
    await asyncio.wait_for(started.wait(), 30)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 1
    assert not any(isinstance(event, RowFinished) for event in events)


async def test_two_batches_share_the_engine_and_get_their_own_rows(engine: OfflineEngine) -> None:
    long = asyncio.create_task(run(engine, [f"Long {number}" for number in range(60)], Sampling(temperature=1.0, max_tokens=30, seed=1)))
    await asyncio.sleep(0)
    short = asyncio.create_task(run(engine, [f"Short {number}" for number in range(3)], Sampling(temperature=1.0, max_tokens=5, seed=1)))
    small = finished(await short)
    assert not long.done(), "the short one need not wait for the end of the long one"
    large = finished(await long)
    assert [row.prompt for row in small] == [f"Short {number}" for number in range(3)]
    assert [row.prompt for row in large] == [f"Long {number}" for number in range(60)]
    assert all(row.completion_tokens <= 5 for row in small)


async def test_a_listener_that_fails_ends_its_batch_only(engine: OfflineEngine) -> None:
    def emit(event: Event) -> None:
        if isinstance(event, RowFinished):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await engine.generate(["a", "b"], GREEDY, True, emit)
    assert len(finished(await run(engine, ["Hello"]))) == 1


def asked(text: str, max_tokens: int = 24, *, thinking: bool = True, temperature: float = 0.0) -> RowAsk:
    return RowAsk([{"role": "user", "content": text}], Sampling(temperature=temperature, top_p=1.0, max_tokens=max_tokens), thinking)


async def test_rows_that_come_one_by_one_get_what_a_batch_gets_each_with_its_own_parameters(engine: OfflineEngine) -> None:
    expected = finished(await run(engine, ["Hello", GUIDE]))
    async with engine.feed() as feed:
        assert feed.room == 2 * AT_ONCE
        hello, instant, guide = await asyncio.gather(
            feed.answer(asked("Hello")), feed.answer(asked(GUIDE, 5, thinking=False)), feed.answer(asked(GUIDE))
        )
        assert [(row.reasoning, row.answer, row.completion_tokens, row.prompt_tokens) for row in (hello, guide)] == [
            (row.reasoning, row.answer, row.completion_tokens, row.prompt_tokens) for row in expected
        ]
        assert instant.reasoning is None and instant.completion_tokens <= 5 and instant.rendered is not None
        assert instant.rendered.endswith("<think></think>") and GUIDE in instant.rendered and hello.seconds > 0
        # Later ones, after the engine has had nothing to do.
        assert (await feed.answer(asked("Hello"))).answer == hello.answer
        with pytest.raises(Failure) as long:
            await feed.answer(asked("x " * 100_000))
        assert long.value.code == "batch.prompt_too_long"


async def test_an_idle_feed_costs_no_cpu(engine: OfflineEngine) -> None:
    async with engine.feed() as feed:
        await feed.answer(asked("Hello", 2))
        before = time.process_time()
        await asyncio.sleep(1)
        assert time.process_time() - before < 0.5


async def test_a_row_of_a_feed_that_is_cancelled_leaves_the_engine_and_the_others_stay(engine: OfflineEngine) -> None:
    async with engine.feed() as feed:
        endless = [asyncio.create_task(feed.answer(asked("Go on and on.", 1500, temperature=2.0))) for _ in range(3 * AT_ONCE)]
        async with asyncio.timeout(60):
            while feed.standing.running < AT_ONCE // 2:  # noqa: ASYNC110 - told by the engine's thread, now and then
                await asyncio.sleep(0.01)
        assert feed.standing.tokens > 0
        kept = asyncio.create_task(feed.answer(asked("Hello", 4)))
        await asyncio.sleep(0)
        began = time.monotonic()
        for task in endless:
            task.cancel()
        await asyncio.wait(endless)
        assert time.monotonic() - began < 1
        assert (await asyncio.wait_for(kept, 30)).completion_tokens <= 4
        assert await engine.with_llm(lambda llm: llm.llm_engine.get_num_unfinished_requests()) == 0
    left = asyncio.create_task(run(engine, ["Hello"]))
    assert finished(await left)[0].error is None


async def test_leaving_a_feed_takes_its_rows_out(engine: OfflineEngine) -> None:
    async with engine.feed() as feed:
        rows = [asyncio.create_task(feed.answer(asked("Go on and on.", 1500, temperature=2.0))) for _ in range(8)]
        await asyncio.sleep(0.2)
    with pytest.raises(Failure):
        await rows[0]
    await asyncio.wait(rows)
    assert [row.exception() is not None for row in rows] == [True] * 8
    assert await engine.with_llm(lambda llm: llm.llm_engine.get_num_unfinished_requests()) == 0


async def test_unloading_frees_the_memory_and_loading_again_works(engine: OfflineEngine) -> None:
    before = vllm_processes()
    assert {process.is_running() for process in before} == {True}
    going = asyncio.create_task(run(engine, ["Go on and on."] * 40, Sampling(temperature=2.0, max_tokens=1500)))

    async def feed_one() -> None:
        async with engine.feed() as feed:
            await feed.answer(asked("Go on and on.", 1500, temperature=2.0))

    fed_row = asyncio.create_task(feed_one())
    await asyncio.sleep(0)
    await engine.unload()
    assert vllm_processes() == [] and not any(process.is_running() for process in before)
    assert state_of(engine) == "unloaded" and engine.failure is None
    with pytest.raises(Failure) as unloaded:
        await going
    assert unloaded.value.code == "batch.unloaded"
    with pytest.raises(Failure) as fed:
        await fed_row
    assert fed.value.code == "batch.unloaded"
    with pytest.raises(Failure) as missing:
        await run(engine, ["Hello"])
    assert missing.value.code == "batch.not_loaded"
    with pytest.raises(Failure):
        async with engine.feed():
            pass
    await engine.unload()  # twice does no harm
    await engine.load(lambda event: None)
    assert state_of(engine) == "ready" and finished(await run(engine, ["Hello"]))[0].error is None


async def test_an_engine_that_dies_is_a_failure_and_not_a_hang(engine: OfflineEngine) -> None:
    writing = asyncio.Event()
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        if isinstance(event, BatchProgress) and event.running:
            writing.set()

    task = asyncio.create_task(engine.generate(["Go on and on."] * 40, Sampling(temperature=2.0, max_tokens=1500), True, emit))
    await asyncio.wait_for(writing.wait(), 60)
    core = next(process for process in psutil.Process().children() if "VLLM::EngineCore" in " ".join(process.cmdline()))
    everyone = vllm_processes()
    core.kill()
    with pytest.raises(Failure) as died:
        await asyncio.wait_for(task, 20)
    assert died.value.code == "batch.engine_died" and died.value.params["reason"]
    assert engine.failure is not None and engine.failure.code == "batch.engine_died"
    await asyncio.to_thread(psutil.wait_procs, everyone, 15)
    assert vllm_processes() == []
    assert state_of(engine) == "failed"
    with pytest.raises(Failure) as dead:
        await run(engine, ["Hello"])
    assert dead.value.code == "batch.engine_died"
    told: list[Event] = []
    await engine.load(told.append)
    assert told[-1] == Phase("batch.ready") and finished(await run(engine, ["Hello"]))[0].error is None
    # The same when nobody is waiting for it.
    psutil.Process(next(process.pid for process in vllm_processes() if "EngineCore" in " ".join(process.cmdline()))).kill()
    with pytest.raises(Failure) as idle:
        async with asyncio.timeout(20):
            while True:
                await engine.with_llm(lambda llm: None)
    assert idle.value.code == "batch.engine_died" and state_of(engine) == "failed"
