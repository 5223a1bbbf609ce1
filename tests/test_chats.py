"""Conversations as people use them: versions, messages in line, instructions, and whose they are. The reply is made by the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kimi_demo import chats as module
from kimi_demo.chats import Asking, Chats
from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import AnswerDelta, Event, RoundStarted, ThoughtDelta
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store

CHAT = "c" * 32
SAMPLING = Sampling(temperature=0.3, max_tokens=77, seed=5)


class Model:
    """Answers "re: question"; what holds "fail" fails; what holds "wait" first waits for `release`. requests: what it was sent."""

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.release = asyncio.Event()

    async def __call__(self, run: Run, request: ChatRequest) -> None:
        self.requests.append(request)
        question = str(request.messages[-1]["content"])
        run.append(RoundStarted(0))
        run.append(ThoughtDelta("hm"))
        if "wait" in question:
            await self.release.wait()
        if "fail" in question:
            raise Failure("endpoint.busy", address="x")
        run.append(AnswerDelta(f"re: {question}"))

    def sent(self) -> list[tuple[str, str]]:
        """The last request's messages."""
        return [(message["role"], message["content"]) for message in self.requests[-1].messages]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
async def chats(model: Model, tmp_path: Path) -> AsyncIterator[Chats]:
    async for each in opened(model, tmp_path):
        yield each


async def opened(model: Model, folder: Path) -> AsyncIterator[Chats]:
    store = Store(folder / "runs.sqlite")
    registry = Registry(store, max_at_once=8)
    chats = Chats(registry, model, max_prompt_chars=1000)
    yield chats
    await chats.aclose()
    await registry.aclose()
    store.close()


def asking(text: str, **more: Any) -> Asking:
    return Asking(text, SAMPLING, **more)


async def say(chats: Chats, text: str, **more: Any) -> Run:
    """A message and its whole reply."""
    run = await chats.send("me", CHAT, asking(text, **more))
    assert run is not None
    await run.wait()
    return run


async def texts(chats: Chats) -> list[str]:
    """The questions that a tab shows."""
    shown = await chats.shown(await chats.conversations.get(CHAT, "me"))
    return [run.asked.text for run in shown.runs if run.asked is not None]


async def waiting(chats: Chats) -> list[str]:
    return [each.text for each in (await chats.conversations.get(CHAT, "me")).queue]


async def refused(code: str, act: Callable[[], Any]) -> None:
    with pytest.raises(Failure) as raised:
        await act()
    assert raised.value.code == code


async def test_a_conversation_goes_on_with_what_was_said(chats: Chats, model: Model) -> None:
    await say(chats, "one")
    await say(chats, "two", thinking=False)
    assert model.sent() == [("user", "one"), ("assistant", "re: one"), ("user", "two")]
    assert (model.requests[-1].sampling, model.requests[-1].thinking) == (SAMPLING, False)
    assert await texts(chats) == ["one", "two"]


async def test_trying_again_makes_a_version_beside_the_first_with_the_same_parameters(chats: Chats, model: Model) -> None:
    await say(chats, "one")
    first = await say(chats, "two", thinking=False)
    again = await chats.again("me", first.id)
    await again.wait()
    assert model.requests[-1] == model.requests[-2]
    shown = await chats.shown(await chats.conversations.get(CHAT, "me"))
    assert shown.runs[-1] is again and shown.versions[again.id] == [first.id, again.id]


async def test_a_change_of_mode_or_text_goes_into_the_version(chats: Chats, model: Model) -> None:
    run = await say(chats, "one")
    await (await chats.again("me", run.id, lambda before: replace(before, thinking=not before.thinking))).wait()
    assert model.requests[-1].thinking is False and model.sent() == [("user", "one")]
    await (await chats.again("me", run.id, lambda before: replace(before, text="uno"))).wait()
    assert model.sent() == [("user", "uno")] and model.requests[-1].thinking is True


async def test_editing_an_earlier_message_goes_on_from_there_and_one_can_go_back(chats: Chats, model: Model) -> None:
    one, two = await say(chats, "one"), await say(chats, "two")
    three = await say(chats, "three")
    edited = await chats.again("me", two.id, lambda before: replace(before, text="zwei"))
    await edited.wait()
    assert model.sent() == [("user", "one"), ("assistant", "re: one"), ("user", "zwei")]
    await say(chats, "drei")
    assert await texts(chats) == ["one", "zwei", "drei"]
    await chats.turn_to("me", two.id)
    assert await texts(chats) == ["one", "two", "three"]
    await chats.turn_to("me", edited.id)
    assert await texts(chats) == ["one", "zwei", "drei"]
    shown = await chats.shown(await chats.conversations.get(CHAT, "me"))
    assert [len(shown.versions[run.id]) for run in shown.runs] == [1, 2, 1]
    assert one.parent is None and three.parent == two.id


async def test_what_is_taken_back_can_be_brought_back_and_is_not_sent(chats: Chats, model: Model) -> None:
    one, two = await say(chats, "one"), await say(chats, "two")
    await chats.take_back("me", two.id)
    shown = await chats.shown(await chats.conversations.get(CHAT, "me"))
    assert [run.id for run in shown.runs] == [one.id] and shown.taken_back
    await chats.bring_back("me", CHAT)
    assert await texts(chats) == ["one", "two"]
    await chats.take_back("me", two.id)
    await chats.take_back("me", one.id)
    assert await texts(chats) == []
    await say(chats, "afresh")
    assert model.sent() == [("user", "afresh")]
    await chats.turn_to("me", one.id)
    assert await texts(chats) == ["one", "two"]


async def test_a_failed_turn_stays_but_is_not_sent_again(chats: Chats, model: Model) -> None:
    await say(chats, "one")
    await say(chats, "fail here")
    await say(chats, "two")
    assert model.sent() == [("user", "one"), ("assistant", "re: one"), ("user", "two")]
    assert await texts(chats) == ["one", "fail here", "two"]


async def test_the_system_prompt_goes_first_in_every_request_of_its_conversation(chats: Chats, model: Model) -> None:
    chats.conversations.instruct(await chats.conversations.open(CHAT, "me"), "Be brief.")
    await say(chats, "one")
    await say(chats, "two")
    assert model.sent()[0] == ("system", "Be brief.") and len(model.sent()) == 4
    run = await chats.send("me", "d" * 32, asking("elsewhere"))
    assert run is not None
    await run.wait()
    assert model.sent() == [("user", "elsewhere")]


async def test_messages_wait_in_line_and_are_sent_in_order(chats: Chats, model: Model) -> None:
    running = await chats.send("me", CHAT, asking("wait for it"))
    assert running is not None
    assert await chats.send("me", CHAT, asking("second", thinking=False)) is None
    assert await chats.send("me", CHAT, asking("third")) is None
    assert await waiting(chats) == ["second", "third"]
    seen = chats.news(CHAT)
    model.release.set()
    await running.wait()
    while await waiting(chats) or chats.going(await chats.conversations.get(CHAT, "me")):
        await chats.settled(await chats.conversations.get(CHAT, "me"))
        going = chats.going(await chats.conversations.get(CHAT, "me"))
        if going is not None:
            await going.wait()
    assert await texts(chats) == ["wait for it", "second", "third"]
    assert model.sent()[-2:] == [("assistant", "re: second"), ("user", "third")]
    assert [request.thinking for request in model.requests] == [True, False, True]
    assert chats.news(CHAT) > seen


async def test_a_waiting_message_can_be_taken_back(chats: Chats, model: Model) -> None:
    running = await chats.send("me", CHAT, asking("wait"))
    for text in ("second", "third"):
        await chats.send("me", CHAT, asking(text))
    first, _ = (await chats.conversations.get(CHAT, "me")).queue
    await chats.unqueue("me", CHAT, first.id)
    assert await waiting(chats) == ["third"]
    await refused("conversations.not_waiting", lambda: chats.unqueue("me", CHAT, first.id))
    assert running is not None and not running.ended


@pytest.mark.parametrize("how", ["stopped", "failed"])
async def test_what_waits_is_not_sent_after_a_reply_that_did_not_finish(chats: Chats, model: Model, how: str) -> None:
    running = await chats.send("me", CHAT, asking("wait, then fail"))
    assert running is not None
    await chats.send("me", CHAT, asking("second"))
    if how == "stopped":
        await chats.stop("me", CHAT)
    else:
        model.release.set()
    assert await running.wait() == how
    await chats.settled(await chats.conversations.get(CHAT, "me"))
    assert await waiting(chats) == ["second"] and len(model.requests) == 1
    await chats.send_waiting("me", CHAT)
    shown = await chats.shown(await chats.conversations.get(CHAT, "me"))
    await shown.runs[-1].wait()
    await refused("conversations.not_waiting", lambda: chats.send_waiting("me", CHAT))
    assert ("user", "second") in [(message["role"], message["content"]) for message in model.requests[1].messages]


async def test_writing_again_after_a_stop_sends_what_waits_first(chats: Chats, model: Model) -> None:
    running = await chats.send("me", CHAT, asking("wait"))
    assert running is not None
    await chats.send("me", CHAT, asking("second"))
    running.cancel()
    await running.wait()
    await chats.settled(await chats.conversations.get(CHAT, "me"))
    assert await chats.send("me", CHAT, asking("third")) is None
    while len(shown := (await chats.shown(await chats.conversations.get(CHAT, "me"))).runs) < 3:
        await shown[-1].wait()
        await chats.settled(await chats.conversations.get(CHAT, "me"))
    assert await texts(chats) == ["wait", "second", "third"] and await waiting(chats) == []


async def test_the_line_is_there_after_a_restart_and_is_not_sent_by_itself(model: Model, tmp_path: Path) -> None:
    async for chats in opened(model, tmp_path):
        await chats.send("me", CHAT, asking("wait"))
        await chats.send("me", CHAT, asking("second", thinking=False))
    async for chats in opened(model, tmp_path):
        await chats.settled(await chats.conversations.get(CHAT, "me"))
        assert await waiting(chats) == ["second"] and len(model.requests) == 1
        await chats.send_waiting("me", CHAT)
        assert await texts(chats) == ["wait", "second"] and await waiting(chats) == []
        await (await chats.shown(await chats.conversations.get(CHAT, "me"))).runs[-1].wait()
        assert model.requests[-1].thinking is False


async def test_the_line_has_an_end(chats: Chats) -> None:
    await chats.send("me", CHAT, asking("wait"))
    for number in range(module.MOST_WAITING):
        await chats.send("me", CHAT, asking(str(number)))
    await refused("conversations.queue_full", lambda: chats.send("me", CHAT, asking("more")))


async def test_while_a_reply_is_written_no_other_version_is_begun(chats: Chats) -> None:
    done = await say(chats, "one")
    await chats.send("me", CHAT, asking("wait"))
    await refused("runs.busy", lambda: chats.again("me", done.id))
    await refused("runs.busy", lambda: chats.take_back("me", done.id))
    await refused("runs.busy", lambda: chats.send_waiting("me", CHAT))
    await chats.turn_to("me", done.id)  # but one may look around
    assert await texts(chats) == ["one", "wait"]


async def test_a_message_that_cannot_be_sent_leaves_no_trace(chats: Chats) -> None:
    await refused("prompt.empty", lambda: chats.send("me", CHAT, asking(" \n")))
    await refused("prompt.too_long", lambda: chats.send("me", CHAT, asking("x" * 1001)))
    assert await chats.conversations.find(CHAT, "me") is None
    run = await say(chats, "one")
    await refused("prompt.empty", lambda: chats.again("me", run.id, lambda before: replace(before, text=" ")))
    assert await texts(chats) == ["one"]


async def test_another_visitor_can_do_nothing_with_it(chats: Chats) -> None:
    run = await say(chats, "one")
    for act in (
        lambda: chats.send("you", CHAT, asking("hello")),
        lambda: chats.again("you", run.id),
        lambda: chats.turn_to("you", run.id),
        lambda: chats.take_back("you", run.id),
        lambda: chats.bring_back("you", CHAT),
        lambda: chats.unqueue("you", CHAT, "x"),
        lambda: chats.send_waiting("you", CHAT),
        lambda: chats.delete("you", CHAT),
        lambda: chats.restore("you", CHAT),
    ):
        with pytest.raises(Failure, match=r"(runs|conversations)\.unknown"):
            await act()
    await chats.stop("you", CHAT)
    assert await texts(chats) == ["one"]


async def test_deleting_stops_what_is_being_written_and_can_be_undone(chats: Chats) -> None:
    running = await chats.send("me", CHAT, asking("wait"))
    await chats.send("me", CHAT, asking("second"))
    await chats.delete("me", CHAT)
    assert running is not None and running.state == "stopped"
    await refused("conversations.deleted", lambda: chats.send("me", CHAT, asking("more")))
    await chats.restore("me", CHAT)
    assert await texts(chats) == ["wait"] and await waiting(chats) == ["second"]


async def test_half_a_character_harms_neither_the_line_nor_the_list(chats: Chats) -> None:
    await chats.send("me", CHAT, asking("wait \ud83d"))
    await chats.send("me", CHAT, asking("then \ud83d"))
    chats.conversations.rename(await chats.conversations.get(CHAT, "me"), "name \ud83d")
    [conversation] = await chats.conversations.list("me")
    assert conversation.title == "name \ufffd" and await waiting(chats) == ["then \ufffd"]


async def test_an_imported_conversation_can_be_gone_on_with(chats: Chats, model: Model) -> None:
    turns: list[tuple[str, list[str], list[Event]]] = [("one", [], [RoundStarted(0), AnswerDelta("eins")]), ("two", [], [])]
    chat = await chats.take_in("me", "", "Be brief.", turns)
    conversation = await chats.conversations.get(chat, "me")
    assert (conversation.title, conversation.system) == ("one", "Be brief.")
    run = await chats.send("me", chat, asking("three"))
    assert run is not None
    await run.wait()
    assert model.sent() == [("system", "Be brief."), ("user", "one"), ("assistant", "eins"), ("user", "three")]
