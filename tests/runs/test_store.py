"""Runs on disk: what is written, when, and what is left of it when the process is killed."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kimi_demo.dialect.events import (
    AnswerDelta,
    Asked,
    Attempt,
    BatchProgress,
    BatchStarted,
    Ended,
    Event,
    Failed,
    Finished,
    Phase,
    Problem,
    RoundStarted,
    RowFinished,
    ThoughtDelta,
    Timed,
    ToolCallDelta,
    ToolChecked,
    ToolDecided,
    ToolEdited,
    ToolResult,
    ToolStarted,
    ToolWaiting,
    Usage,
)
from kimi_demo.runs.rows import event_of, text_of
from kimi_demo.runs.store import Store
from tests.runs.files import NEVER, events_of, put, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()


# Writing and reading

EVERY_KIND: list[Event] = [
    Asked("你好 🍓", {"temperature": 0.6, "thinking": True, "top_k": None}),
    Phase("server.loading", 1, 2, {"name": "x"}),
    RoundStarted(0, {"messages": [{"role": "user", "content": "你好"}]}),
    ThoughtDelta("hm"),
    AnswerDelta("a\ud83c\x00\u2028"),
    ToolCallDelta(0, "functions.add:0", "add", '{"a": 1}'),
    ToolChecked(0, (Problem("a", "type", "must be an integer"),)),
    ToolWaiting(0, "approval", 900.0),
    ToolDecided(0, "approved"),
    ToolStarted(0),
    ToolEdited(0, "result"),
    ToolResult(0, "functions.add:0", "add", result="3", seconds=0.5),
    Attempt(1, (("add", '{"a": 1}', 0),), "3", 2, 1.5, 20, "tools.loop", {"name": "add"}),
    Usage(1, 2, None, 3),
    Finished("stop"),
    BatchStarted(2),
    RowFinished(0, "p", None, "a", "stop", 1, 2, 0.5, "endpoint.refused", {"url": "x"}),
    BatchProgress(1, 1, 0, 5),
    Failed("runs.unknown", {"a": "b"}),
    Ended("failed"),
]


def test_every_kind_of_event_comes_back_as_it_was(store: Store) -> None:
    run = put(store, *EVERY_KIND, title="标题", group="g", kind="tools")
    found = store.load(run.id, "me")
    assert events_of(found) == EVERY_KIND
    assert found is not None
    assert (found.id, found.owner, found.kind, found.group, found.title, found.created_at, found.state) == (
        *(run.id, "me", "tools", "g", "标题", run.created_at),
        "failed",
    )
    assert [item.at for item in found.entries] == [float(number) for number in range(len(EVERY_KIND))]


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_survives(text: str) -> None:
    stored = text_of(AnswerDelta(text))
    stored.encode()
    assert event_of(stored) == AnswerDelta(text)


def test_fifty_thousand_tokens_are_few_rows(store: Store, path: Path) -> None:
    run = put(store, Asked("?"), RoundStarted(0), *[ThoughtDelta("x")] * 50_000, Ended("done"))
    found = store.load(run.id, "me")
    assert found is not None and sum(len(e.text) for e in events_of(found) if isinstance(e, ThoughtDelta)) == 50_000
    [(count,)] = rows(path)
    assert isinstance(count, int) and count < 500


def test_only_the_owner_finds_a_run(store: Store) -> None:
    run = put(store, Asked("?"), Ended("done"))
    assert store.load(run.id, "me") is not None
    assert store.load(run.id, "you") is None
    assert store.load("unknown", "me") is None


def test_ids_come_in_order_of_creation(store: Store) -> None:
    first = put(store, Asked("?"), group="g")
    second = put(store, Asked("?"), kind="tools", group="g")
    third = put(store, Asked("?"))
    put(store, Asked("?"), owner="you", group="g")
    store.flush()
    assert store.ids("me") == [first.id, second.id, third.id]
    assert store.ids("me", kind="chat") == [first.id, third.id]
    assert store.ids("me", group="g") == [first.id, second.id]
    assert store.ids("nobody") == []


def test_what_is_deleted_is_gone_from_the_file(path: Path) -> None:
    store = Store(path)
    run = put(store, Asked("a secret question"), Ended("done"))
    other = put(store, Asked("another question"), Ended("done"))
    store.flush()
    store.delete(run.id)
    assert store.load(run.id, "me") is None
    store.close()
    assert [row for row in rows(path, "SELECT event FROM events") if "secret" in str(row)] == []
    assert b"secret question" not in path.read_bytes()
    assert b"another question" in path.read_bytes()
    assert other.id


def test_what_is_written_after_deletion_is_dropped(store: Store) -> None:
    run = put(store, Asked("?"))
    store.delete(run.id)
    store.write(run.id, Timed(1.0, Ended("done")))
    store.flush()
    assert store.load(run.id, "me") is None and store.trouble is None


def test_several_read_at_once_while_one_writes(store: Store) -> None:
    run = put(store, Asked("?"), *[AnswerDelta("x")] * 1_000, Ended("done"))
    writing = put(store, Asked("?"))
    found: list[list[Event]] = []

    def read() -> None:
        for _ in range(20):
            store.write(writing.id, Timed(1.0, AnswerDelta("y")))
            found.append(events_of(store.load(run.id, "me")))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert len(found) == 80 and all(events == found[0] for events in found)
    assert "".join(e.text for e in found[0] if isinstance(e, AnswerDelta)) == "x" * 1_000
    store.write(writing.id, Timed(2.0, Ended("done")))
    assert "".join(e.text for e in events_of(store.load(writing.id, "me")) if isinstance(e, AnswerDelta)) == "y" * 80


# When it is written


def wait_for_rows(path: Path, query: str) -> None:
    """Until `query` finds something; a store that does not write would make this fail after a minute."""
    for _ in range(6_000):
        if rows(path, query):
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"nothing for {query}")


def test_events_are_written_without_being_asked_for(store: Store, path: Path) -> None:
    put(store, Asked("?"), AnswerDelta("a"))
    wait_for_rows(path, "SELECT 1 FROM events WHERE event LIKE '%answer_delta%'")


def test_the_end_is_written_at_once(path: Path) -> None:
    store = Store(path, commit_every=NEVER)
    put(store, Asked("?"), Ended("done"))
    wait_for_rows(path, "SELECT 1 FROM runs WHERE ended = 'done'")
    store.close()


def test_close_writes_what_waits(path: Path) -> None:
    store = Store(path, commit_every=NEVER)
    put(store, Asked("?"))
    store.close()
    assert rows(path) == [(1,)]


# After the application died


def test_runs_without_an_end_are_interrupted(path: Path) -> None:
    store = Store(path)
    going = put(store, Asked("?"), AnswerDelta("so far"))
    ended = put(store, Asked("?"), Ended("stopped"))
    store.close()
    for _ in range(2):  # opening it again changes nothing more
        store = Store(path)
        assert events_of(store.load(going.id, "me")) == [Asked("?"), AnswerDelta("so far"), Ended("interrupted")]
        assert events_of(store.load(ended.id, "me")) == [Asked("?"), Ended("stopped")]
        store.close()


WRITER = """
import asyncio, sys, time
from pathlib import Path
from kimi_demo.dialect.events import AnswerDelta, Asked, RoundStarted
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.store import Store
from tests.runs.files import NEVER, events_of, put, rows

async def work(run):
    run.append(RoundStarted(0))
    for number in range(10_000):
        run.append(AnswerDelta(f"{number},"))
        print(number, time.monotonic(), flush=True)
        await asyncio.sleep(0.01)

async def main():
    run = Registry(Store(Path(sys.argv[1])), 4).start("me", "chat", work, title="t", asked=Asked("?"))
    print(run.id, flush=True)
    await run.wait()

asyncio.run(main())
"""


def test_kill_9_loses_no_more_than_the_last_second(path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    run_id = process.stdout.readline().strip()
    written: list[tuple[int, float]] = []
    while not written or written[-1][1] - written[0][1] < 2.0:
        number, at = process.stdout.readline().split()
        written.append((int(number), float(at)))
    process.kill()
    for line in process.stdout.read().splitlines():  # what it wrote until it was gone; the last line may be cut
        parts = line.split()
        if len(parts) == 2 and "." in parts[1]:
            written.append((int(parts[0]), float(parts[1])))
    process.wait(30)
    died_at = written[-1][1]
    store = Store(path)
    events = events_of(store.load(run_id, "me"))
    store.close()
    text = "".join(event.text for event in events if isinstance(event, AnswerDelta))
    whole = "".join(f"{number}," for number, _ in written)
    assert events[0] == Asked("?") and events[-1] == Ended("interrupted")
    assert whole.startswith(text) or text.startswith(whole)
    assert len(text) >= len("".join(f"{number}," for number, at in written if at < died_at - 1.0))


@given(st.lists(st.sampled_from(["w", "f"]), max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_flushing_anywhere_changes_no_text(store: Store, steps: list[str]) -> None:
    run = put(store, Asked("?"))
    expected = ""
    for number, step in enumerate(steps):
        if step == "w":
            store.write(run.id, Timed(float(number), AnswerDelta(f"{number} ")))
            expected += f"{number} "
        else:
            store.flush()
    store.write(run.id, Timed(99.0, Ended("done")))
    found = events_of(store.load(run.id, "me"))
    assert "".join(event.text for event in found if isinstance(event, AnswerDelta)) == expected
