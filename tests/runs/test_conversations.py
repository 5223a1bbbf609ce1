"""Conversations in the store: who finds which, searching, changing, deleting, and files from before there were any."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from kimi_demo.dialect.events import AnswerDelta, Asked, Ended, Event, ThoughtDelta
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs import conversations as module
from kimi_demo.runs.conversations import Conversation, Conversations, Queued
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.runs.schema import MIGRATIONS
from kimi_demo.runs.store import Store
from tests.runs.files import fill, put, rows

A, B, C = "a" * 32, "b" * 32, "c" * 32


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    store = Store(tmp_path / "runs.sqlite")
    registry = Registry(store, max_at_once=4)
    yield registry
    await registry.aclose()
    store.close()


@pytest.fixture
def conversations(registry: Registry) -> Conversations:
    return Conversations(registry)


async def said(conversations: Conversations, id: str, question: str, answer: str = "", owner: str = "me") -> Run:
    """One more turn."""
    conversation = await conversations.open(id, owner)
    events: list[Event] = [Asked(question), ThoughtDelta("secretly"), *(AnswerDelta(part) for part in answer.split("|"))]
    run = conversations._registry.add_finished(owner, "chat", events, title=question, group=id, parent=conversation.leaf)
    conversations.grow(conversation, run.id, title=question)
    return run


async def test_the_first_message_becomes_the_title_and_the_latest_comes_first(conversations: Conversations) -> None:
    await said(conversations, A, "What is\na large  language model?")
    await said(conversations, B, "x" * 200)
    assert [each.title for each in await conversations.list("me")] == ["x" * 59 + "…", "What is a large language model?"]
    await said(conversations, A, "And a small one?")
    assert [each.id for each in await conversations.list("me")] == [A, B]
    latest = await conversations.latest("me")
    assert latest is not None and latest.id == A and latest.title == "What is a large language model?"


async def test_another_owner_finds_nothing_and_cannot_take_over(conversations: Conversations) -> None:
    await said(conversations, A, "mine")
    assert await conversations.list("you") == []
    assert await conversations.find(A, "you") is None
    for look_up in (conversations.get, conversations.open):
        with pytest.raises(Failure, match=r"conversations\.unknown"):
            await look_up(A, "you")
    assert (await conversations.get(A, "me")).owner == "me"


@pytest.mark.parametrize("id", ["", "x", "A" * 32, "a" * 33, "../" + "a" * 29])
async def test_an_id_that_no_browser_makes_is_refused(conversations: Conversations, id: str) -> None:
    with pytest.raises(Failure, match=r"conversations\.unknown"):
        await conversations.open(id, "me")


async def test_searching_looks_at_titles_questions_and_answers_in_any_case(conversations: Conversations) -> None:
    await said(conversations, A, "Warum?", "Größe 10%| of THE sum_")
    await said(conversations, B, "什么是大模型？", "大语言|模型")
    await said(conversations, C, "theirs: sum", owner="you")
    found = {
        text: {each.id for each in await conversations.list("me", search=text)}
        for text in ("GRÖSSE", "10% of", "sum_", "su_", "模型", "大语言模型", "warum", "secretly", "nowhere", "  ")
    }
    assert found == {
        **{"GRÖSSE": {A}, "10% of": {A}, "sum_": {A}, "su_": set(), "模型": {B}, "大语言模型": {B}},
        **{"warum": {A}, "secretly": set(), "nowhere": set(), "  ": {A, B}},
    }


async def test_what_is_changed_is_there_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path / "file")
    conversations = Conversations(Registry(store, 4))
    run = await said(conversations, A, "hello")
    conversation = await conversations.get(A, "me")
    conversations.rename(conversation, "  A new\nname ")
    conversations.instruct(conversation, "Be\n  brief.")
    conversations.wait_in_line(conversation, (Queued("1", "next", {"thinking": False}),))
    store.close()
    store = Store(tmp_path / "file")
    found = await Conversations(Registry(store, 4)).get(A, "me")
    store.close()
    assert (found.title, found.leaf, found.system) == ("A new name", run.id, "Be\n  brief.")
    assert found.queue == (Queued("1", "next", {"thinking": False}),)
    assert found.updated_at - found.created_at < timedelta(seconds=10)


async def test_a_name_must_be_one(conversations: Conversations) -> None:
    await said(conversations, A, "hello")
    with pytest.raises(Failure, match=r"conversations\.no_title"):
        conversations.rename(await conversations.get(A, "me"), " \n")


async def test_what_is_deleted_can_be_brought_back_until_it_is_purged(
    conversations: Conversations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await said(conversations, A, "hello")
    kept = await said(conversations, B, "stays")
    conversations.delete(await conversations.get(A, "me"))
    assert [each.id for each in await conversations.list("me")] == [B]
    with pytest.raises(Failure, match=r"conversations\.deleted"):
        await conversations.open(A, "me")
    await conversations.purge()
    deleted = await conversations.find(A, "me")
    assert deleted is not None and deleted.deleted
    conversations.restore(deleted)
    assert (await conversations.get(A, "me")).leaf == run.id
    conversations.delete(await conversations.get(A, "me"))
    monkeypatch.setattr(module, "UNDO_S", 0.0)
    await conversations.purge()
    assert await conversations.find(A, "me") is None
    assert rows(tmp_path / "runs.sqlite", "SELECT id FROM runs") == [(kept.id,)]
    assert (await conversations._registry.tree(A, "me")).path(run.id) == []


async def test_a_full_disk_keeps_conversations_in_memory(conversations: Conversations, registry: Registry) -> None:
    await said(conversations, A, "before")
    await asyncio.to_thread(registry.store.flush)
    fill(registry.store)
    runs = [await said(conversations, B, f"{i} " + "x" * 50_000) for i in range(3)]
    conversation = await conversations.get(B, "me")
    assert registry.store.trouble is not None
    assert conversation.leaf == runs[-1].id
    assert (await registry.tree(B, "me")).path(runs[-1].id) == [run.id for run in runs]
    assert {each.id for each in await conversations.list("me")} == {A, B}
    assert await conversations.find(B, "you") is None
    registry.store._connection.execute("PRAGMA max_page_count = 1000000")


def test_a_file_from_before_conversations_becomes_chains(tmp_path: Path) -> None:
    path = tmp_path / "old"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{MIGRATIONS[0]}; PRAGMA application_id = {0x4B696D69}; PRAGMA user_version = 1;")
        for nr, (id, owner, kind, group) in enumerate(
            [("r1", "me", "chat", A), ("r2", "me", "chat", A), ("x", "me", "tools", B), ("r3", "me", "chat", A), ("y", "you", "chat", C)]
        ):
            at = f"2026-11-30T16:00:0{nr}+00:00"
            ended = None if id == "r3" else "done"
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (nr, id, owner, kind, group, f"title {id}", at, ended))
            for seq, event in enumerate((f'{{"text":"Question {id}","type":"asked"}}', '{"text":"Ans","type":"answer_delta"}', "damaged")):
                connection.execute("INSERT INTO events VALUES (?, ?, 0, ?)", (nr, seq, event))
        connection.commit()
    store = Store(path)

    async def look() -> tuple[list[Conversation], list[str], list[str]]:
        registry = Registry(store, 4)
        conversations = Conversations(registry)
        found = await conversations.list("me")
        return (
            found,
            (await registry.tree(A, "me")).path(found[0].leaf),
            [c.id for c in await conversations.list("me", search="question R3")],
        )

    found, path_of, searched = asyncio.run(look())
    store.close()
    assert [(each.id, each.title, each.leaf) for each in found] == [(A, "title r1", "r3")]
    assert path_of == ["r1", "r2", "r3"]
    assert searched == [A]
    assert rows(path, "SELECT parent FROM runs WHERE kind = 'tools'") == [(None,)]


def test_an_interrupted_turn_is_found_by_searching(tmp_path: Path) -> None:
    store = Store(tmp_path / "file")
    put(store, Asked("Needle"), AnswerDelta("half an ans"), group=A)
    store.change_conversation(A, owner="me", created_at="2026-11-30T16:00:00+00:00", title="t")
    store.close()
    store = Store(tmp_path / "file")
    assert [id for id, _ in store.conversations("me", search="needle")] == [A]
    assert isinstance(store.load(store.ids("me")[0], "me").entries[-1].event, Ended)  # type: ignore[union-attr]
    store.close()
