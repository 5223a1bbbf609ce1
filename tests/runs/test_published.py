"""Published pages on disk: who finds them, and what takes them away."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kimi_demo.dialect.events import Asked, Ended
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs import published as module
from kimi_demo.runs.conversations import Conversations
from kimi_demo.runs.published import Published
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.store import Store
from tests.runs.files import NEVER, put, rows


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "runs.sqlite", commit_every=NEVER)
    yield made
    made.close()


def of(store: Store, *, most: int = 100, most_bytes: int = 10_000_000) -> Published:
    return Published(store, most=most, most_bytes=most_bytes)


async def test_a_page_is_found_by_its_token_alone_also_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    run = put(store, Asked("q"), Ended("done"))
    first = await of(store).add("me", "tools", run.id, "A \ud800 title", [run.id, run.id], b"<p>one</p>")
    second = await of(store).add("me", "tools", run.id, "t", [run.id], b"<p>two</p>")
    store.close()
    again = of(Store(tmp_path / "runs.sqlite"))
    assert await again.page(first.token) == b"<p>one</p>" and await again.page(second.token) == b"<p>two</p>"
    assert first.token != second.token and len(first.token) == 32
    for guessed in ("", "%", first.token[:-1], first.token.swapcase(), "' OR 1=1 --"):
        assert await again.page(guessed) is None
    (newest, oldest) = await again.list("me")
    assert (newest, oldest.token, oldest.title, oldest.bytes) == (second, first.token, "A � title", 10)
    assert await again.list("you") == [] and await again.list() == [newest, oldest]


async def test_only_the_owner_or_whoever_may_all_withdraws_and_only_once(store: Store) -> None:
    run, published = put(store, Asked("q"), Ended("done")), of(store)
    link = await published.add("me", "tools", run.id, "t", [run.id], b"x")
    with pytest.raises(Failure, match="publish.unknown"):
        await published.withdraw(link.token, "you")
    assert await published.page(link.token) == b"x"
    await published.withdraw(link.token, "me")
    assert await published.page(link.token) is None and await published.list() == []
    with pytest.raises(Failure, match="publish.unknown"):
        await published.withdraw(link.token, None)


async def test_deleting_any_of_its_runs_withdraws_a_page_and_no_other(store: Store) -> None:
    one, two, three = (put(store, Asked("q"), Ended("done"), group="g") for _ in range(3))
    published = of(store)
    both = await published.add("me", "chat", "g", "t", [one.id, two.id], b"both")
    other = await published.add("me", "turn", "g", "t", [three.id], b"other")
    await Registry(store, 8).delete(two.id, "me")
    assert await published.page(both.token) is None and await published.page(other.token) == b"other"
    store.flush()
    assert rows(store._path, "SELECT run FROM published_runs") == [(three.id,)]


async def test_a_run_that_was_deleted_meanwhile_or_is_anothers_is_not_published(store: Store) -> None:
    run, published = put(store, Asked("q"), Ended("done")), of(store)
    for owner, named in (("me", "gone"), ("you", run.id)):
        with pytest.raises(Failure, match="runs.unknown"):
            await published.add(owner, "tools", named, "t", [run.id, named], b"x")
    assert rows(store._path, "SELECT count(*) FROM published") == [(0,)]


async def test_a_deleted_conversation_hides_its_pages_until_it_is_brought_back(store: Store) -> None:
    registry = Registry(store, 8)
    conversations, published = Conversations(registry), of(store)
    conversation = await conversations.open("c" * 32, "me")
    run = put(store, Asked("q"), Ended("done"), group=conversation.id)
    conversations.grow(conversation, run.id, title="q")
    links = [await published.add("me", kind, conversation.id, "t", [run.id], b"x") for kind in ("chat", "turn")]
    conversations.delete(conversation)
    assert [await published.page(link.token) for link in links] == [None, None] and await published.list("me") == []
    conversations.restore(conversation)
    assert [await published.page(link.token) for link in links] == [b"x", b"x"]
    store.change_conversation(conversation.id, owner="me", deleted_at=datetime(2026, 1, 1, tzinfo=UTC).isoformat())
    await conversations.purge()
    assert rows(store._path, "SELECT count(*) FROM published") == [(0,)]


async def test_limits_are_held_also_against_several_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = put(store, Asked("q"), Ended("done"))
    published = of(store, most=3, most_bytes=1_000_000)
    adding = [published.add("me", "tools", run.id, "t", [run.id], b"x" * 100) for _ in range(8)]
    told = await asyncio.gather(*adding, return_exceptions=True)
    assert sum(isinstance(each, Failure) and each.code == "publish.too_many" for each in told) == 5
    await published.withdraw((await published.list("me"))[0].token, "me")
    with pytest.raises(Failure, match="publish.full"):
        await published.add("me", "tools", run.id, "t", [run.id], b"x" * 999_900)
    monkeypatch.setattr(module, "MOST_PAGE_BYTES", 200)
    with pytest.raises(Failure, match="publish.too_large"):
        await published.add("me", "tools", run.id, "t", [run.id], b"x" * 201)


async def test_a_batchs_pages_are_withdrawn_with_it(store: Store) -> None:
    published = of(store)
    link = await published.add("me", "batch", "b", "t", [], b"x")
    other = await published.add("me", "batch", "c", "t", [], b"y")
    await published.withdraw_all("me", "batch", "b")
    assert await published.page(link.token) is None and await published.page(other.token) == b"y"
