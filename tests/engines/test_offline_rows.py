"""A batch's bookkeeping, without an engine."""

from collections.abc import Mapping

import pytest

from kimi_demo.dialect.events import BatchProgress, BatchStarted, Event, RowFinished
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline_rows import Batch, BatchRow, Entered, Standing, Written, messages_of, prompt_of


def batch_of(*rows: BatchRow, thinking: bool = True, seed: int | None = None) -> tuple[Batch, list[Event]]:
    sent: list[Event] = []
    return Batch(rows, Sampling(seed=seed), thinking, sent.extend), sent


def enter(batch: Batch, request_id: str, at: float = 0.0) -> None:
    batch.entered[request_id] = Entered(batch.take(), 7, at, request_id + "-internal")


def standing(entered: Mapping[str, Entered]) -> Standing:
    """Every row in the engine writes and has three tokens."""
    return Standing(len(entered), 3 * len(entered))


def test_rows_are_prompts_or_conversations() -> None:
    conversation = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    assert messages_of("hi") == [{"role": "user", "content": "hi"}] and prompt_of("hi") == "hi"
    assert messages_of(conversation) == conversation and prompt_of(conversation) == "q"
    assert prompt_of([]) == ""


def test_events_in_order_and_counts_that_add_up() -> None:
    batch, sent = batch_of("a", "b", "c")
    batch.start()
    enter(batch, "r0", at=10.0)
    enter(batch, "r1", at=10.0)
    batch.report(standing, 11.0)
    assert sent == [BatchStarted(3), BatchProgress(done=0, running=2, waiting=1, generated_tokens=6)]
    batch.finish("r1", Written("so</think>42", 9, "stop"), 12.5)
    batch.report(standing, 12.5)
    assert sent[2:] == [
        RowFinished(1, "b", reasoning="so", answer="42", finish_reason="stop", prompt_tokens=7, completion_tokens=9, seconds=2.5),
        BatchProgress(done=1, running=1, waiting=1, generated_tokens=12),
    ]


def test_progress_is_rare_but_rows_and_the_end_are_not_held_back() -> None:
    batch, sent = batch_of("a", "b")
    batch.start()
    enter(batch, "r0")
    enter(batch, "r1")
    asked: list[None] = []

    def counted(entered: Mapping[str, Entered]) -> Standing:
        asked.append(None)
        return Standing(len(entered), len(asked))  # one more token each time

    for step in range(101):
        batch.report(counted, step / 100)
    assert len([event for event in sent if isinstance(event, BatchProgress)]) == len(asked) == 5
    batch.finish("r0", Written("x", 1, "stop"), 1.01)
    batch.report(counted, 1.01)
    assert [type(event) for event in sent[-1:]] == [RowFinished]
    batch.finish("r1", Written("x", 1, "stop"), 1.02)
    batch.report(standing, 1.02)
    assert sent[-1] == BatchProgress(done=2, running=0, waiting=0, generated_tokens=2) and batch.is_over


def test_nothing_is_told_twice_while_nothing_changes() -> None:
    batch, sent = batch_of("a")
    enter(batch, "r0")
    for second in range(5):
        batch.report(standing, float(second))
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("text", "thinking", "reasoning", "answer"),
    [
        ("why</think>\n\nbecause", True, "why", "because"),
        ("cut off", True, "cut off", ""),
        ("plain", False, None, "plain"),
        ("a</think>b</think>c", True, "a", "b</think>c"),
    ],
)
def test_thought_and_answer_are_told_apart(text: str, thinking: bool, reasoning: str | None, answer: str) -> None:
    batch, sent = batch_of("q", thinking=thinking)
    enter(batch, "r")
    batch.finish("r", Written(text, 3, "length"), 1.0)
    batch.report(standing, 1.0)
    row = sent[0]
    assert isinstance(row, RowFinished) and (row.reasoning, row.answer, row.finish_reason) == (reasoning, answer, "length")


def test_a_row_that_cannot_run_says_why_and_counts_as_done() -> None:
    batch, sent = batch_of("long", "short")
    batch.start()
    batch.reject(batch.take(), Failure("batch.prompt_too_long", tokens=9000, limit=8192))
    enter(batch, "r1")
    batch.report(standing, 0.0)
    rejected = sent[1]
    assert isinstance(rejected, RowFinished)
    assert (rejected.error, rejected.error_params, rejected.prompt) == (
        "batch.prompt_too_long",
        {"tokens": "9000", "limit": "8192"},
        "long",
    )
    assert sent[2] == BatchProgress(done=1, running=1, waiting=0, generated_tokens=3) and not batch.is_over


def test_every_row_has_its_own_seed() -> None:
    assert batch_of("a")[0].ask(0).sampling.seed is None
    seeded = batch_of("a", "b", "c", seed=2**63 - 2)[0]
    assert [seeded.ask(index).sampling.seed for index in range(3)] == [2**63 - 2, 2**63 - 1, 0]
    assert seeded.ask(1).messages == [{"role": "user", "content": "b"}] and seeded.ask(1).thinking


def test_the_end_sends_what_is_left_and_resolves_once() -> None:
    batch, sent = batch_of("a")
    batch.start()
    batch.end(Failure("batch.unloaded"))
    batch.end()
    assert sent == [BatchStarted(1)]
    error = batch.done.exception(timeout=0)
    assert isinstance(error, Failure) and error.code == "batch.unloaded"
