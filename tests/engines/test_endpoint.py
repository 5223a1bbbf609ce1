"""Replies streamed from a real HTTP server that plays scenarios."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from kimi_demo.dialect.conversation import ChatRequest, assistant_in_loop, tool_answer, user
from kimi_demo.dialect.events import AnswerDelta, Event, Finished, RoundStarted, ThoughtDelta, Timed, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.port import ChatPort
from kimi_demo.tools.guide import GUIDE_TOOLS
from tests.scripted_script import ANSWER, THOUGHT
from tests.scripted_server import Scripted, running

TOOLS = tuple(tool.schema() for tool in GUIDE_TOOLS)


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as started:
        yield started


@pytest.fixture
def scripted(server: Scripted) -> Scripted:
    server.reset()
    return server


@pytest.fixture
async def endpoint(scripted: Scripted) -> AsyncIterator[Endpoint]:
    connected = await Endpoint.connect(scripted.base_url)
    yield connected
    await connected.aclose()


def ask(text: str = "What is a language model?", **fields: Any) -> ChatRequest:
    return ChatRequest([user(text)], Sampling(max_tokens=512), **fields)


async def collect(stream: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in stream]


def reply_of(events: list[Event]) -> Reply:
    return rounds([Timed(0.0, event) for event in [RoundStarted(0), *events]])[0]


async def failing(stream: AsyncIterator[Event]) -> tuple[list[Event], Failure]:
    events: list[Event] = []
    with pytest.raises(Failure) as caught:
        async for event in stream:
            events.append(event)
    return events, caught.value


def port(endpoint: Endpoint) -> ChatPort:
    return endpoint  # mypy checks that it is one


@pytest.mark.parametrize(
    "scenario", ["reasoning", "reasoning_content", "reasoning_twice", "thought_in_content", "no_choices", "ignores_stream"]
)
@pytest.mark.parametrize("cut_bytes", [None, 1, 7])
async def test_thought_and_answer_arrive_to_the_letter(
    scripted: Scripted, endpoint: Endpoint, scenario: str, cut_bytes: int | None
) -> None:
    scripted.scenario(scenario, cut_bytes=cut_bytes)
    events = await collect(endpoint.stream(ask()))
    reply = reply_of(events)
    assert (reply.thought, reply.answer, reply.finish_reason) == (THOUGHT, ANSWER, "stop")
    assert isinstance(events[-1], Finished) and isinstance(events[-2], Usage) and events[-2].final


@pytest.mark.parametrize("mark", ["</think>", "|</thi|nk>|", "<|/|t|h|i|n|k|>", "\n</think|>\n\n"])
async def test_thought_in_content_is_split_wherever_chunks_are_cut(scripted: Scripted, endpoint: Endpoint, mark: str) -> None:
    scripted.scenario("thought_in_content", thought="Hm, a < b.", answer="Yes.", mark=mark)
    reply = reply_of(await collect(endpoint.stream(ask())))
    assert (reply.thought.rstrip("\n"), reply.answer) == ("Hm, a < b.", "Yes.")
    assert "</think" not in reply.thought + reply.answer


async def test_thinking_off_leaves_content_alone(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("answer_only", answer="say </think> aloud", counts_reasoning=False)
    reply = reply_of(await collect(endpoint.stream(ask(thinking=False))))
    assert (reply.thought, reply.answer) == ("", "say </think> aloud")
    assert scripted.chats[0].body["chat_template_kwargs"] == {"thinking": False}


async def test_answer_without_a_thought_from_a_server_that_splits(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("answer_only")
    reply = reply_of(await collect(endpoint.stream(ask())))
    assert (reply.thought, reply.answer) == ("", ANSWER)


async def test_a_server_that_has_split_once_is_trusted_from_then_on(scripted: Scripted, endpoint: Endpoint) -> None:
    await collect(endpoint.stream(ask()))
    scripted.scenario("answer_only", counts_reasoning=False)
    reply = reply_of(await collect(endpoint.stream(ask())))
    assert (reply.thought, reply.answer) == ("", ANSWER)


async def test_a_model_that_never_thinks_is_found_out_by_its_template(scripted: Scripted) -> None:
    scripted.opens_thought = False
    scripted.scenario("answer_only", counts_reasoning=False)
    endpoint = await Endpoint.connect(scripted.base_url)
    reply = reply_of(await collect(endpoint.stream(ask())))
    assert (reply.thought, reply.answer) == ("", ANSWER)
    await endpoint.aclose()


async def test_a_model_that_never_thinks_is_found_out_by_its_first_reply_where_the_template_cannot_be_asked(scripted: Scripted) -> None:
    scripted.missing = {"/tokenize"}
    scripted.scenario("answer_only", counts_reasoning=False)
    endpoint = await Endpoint.connect(scripted.base_url)
    first, second = [reply_of(await collect(endpoint.stream(ask()))) for _ in range(2)]
    assert (first.answer, second.answer) == (ANSWER, ANSWER)
    assert (first.thought, second.thought) == (ANSWER, "")
    await endpoint.aclose()


@pytest.mark.parametrize(("scenario", "cut"), [("cut_in_thought", True), ("cut_in_answer", False)])
async def test_cut_by_the_token_limit(scripted: Scripted, endpoint: Endpoint, scenario: str, cut: bool) -> None:
    scripted.scenario(scenario)
    reply = reply_of(await collect(endpoint.stream(ask())))
    assert reply.finish_reason == "length"
    assert reply.cut_off_in_thought is cut
    assert THOUGHT.startswith(reply.thought) and ANSWER.startswith(reply.answer)


async def test_unsplit_thought_cut_by_the_token_limit(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("thought_in_content", answer="", mark="", finish="length")
    assert reply_of(await collect(endpoint.stream(ask()))).cut_off_in_thought


async def test_usage_is_the_servers_count(scripted: Scripted, endpoint: Endpoint) -> None:
    events = await collect(endpoint.stream(ask()))
    finals = [event for event in events if isinstance(event, Usage) and event.final]
    thoughts, answers = [sum(isinstance(event, kind) for event in events) for kind in (ThoughtDelta, AnswerDelta)]
    assert len(finals) == 1
    assert (finals[0].completion_tokens, finals[0].reasoning_tokens) == (thoughts + answers, thoughts)
    assert finals[0].prompt_tokens == await endpoint.count_tokens(ask())
    assert finals[0].cached_tokens is not None


async def test_running_usage_is_throttled(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("long_thought", tokens=200, rate=200)
    events = await collect(endpoint.stream(ask()))
    running_counts = [event.completion_tokens for event in events if isinstance(event, Usage) and not event.final]
    assert 2 <= len(running_counts) <= 40  # about 5 in one second; many more would be one per token
    assert running_counts == sorted(running_counts, key=lambda count: count or 0)


async def test_without_usage_there_is_none(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("no_usage")
    events = await collect(endpoint.stream(ask()))
    assert not any(isinstance(event, Usage) for event in events)
    assert reply_of(events).answer == ANSWER


async def test_body_is_exactly_what_goes_out(scripted: Scripted, endpoint: Endpoint) -> None:
    request = ChatRequest([user("  你好\n\tx 🎉 ")], Sampling(top_k=20, min_p=0.0, seed=3), tools=TOOLS, tool_choice="auto")
    await collect(endpoint.stream(request))
    assert scripted.chats[0].body == json.loads(json.dumps(endpoint.body(request)))
    assert scripted.chats[0].body["messages"][0]["content"] == "  你好\n\tx 🎉 "


@pytest.mark.parametrize(("allows", "left"), [("final", {"include_usage": True}), ("", None)])
async def test_rejected_stream_options_are_dropped_and_stay_dropped(scripted: Scripted, endpoint: Endpoint, allows: str, left: Any) -> None:
    scripted.scenario("no_stream_options", allows=allows)
    assert reply_of(await collect(endpoint.stream(ask()))).answer == ANSWER
    tries = len(scripted.chats)
    await collect(endpoint.stream(ask()))
    assert len(scripted.chats) == tries + 1
    assert scripted.chats[-1].body.get("stream_options") == left
    assert endpoint.body(ask()).get("stream_options") == left


CALLS: dict[str, list[tuple[str, str, str]]] = {
    "one_call": [("functions.add:0", "add", '{"a": 17, "b": 25}')],
    "two_calls": [("functions.add:0", "add", '{"a": 1, "b": 2}'), ("functions.mul:1", "mul", '{"a": 3, "b": 4}')],
    "parallel_calls": [("functions.add:0", "add", '{"a": 1, "b": 2}'), ("functions.mul:1", "mul", '{"a": 3, "b": 4}')],
    "same_id": [("functions.add:0", "add", '{"a": 1, "b": 2}'), ("functions.add:0", "add", '{"a": 3, "b": 4}')],
    "foreign_ids": [("call_a1b2c3", "add", '{"a": 17, "b": 25}')],
    "bad_arguments": [("functions.add:0", "add", '{"a": 17, b: 25')],
    "cut_arguments": [("functions.add:0", "add", '{"a": 17, "b')],
    "wrong_arguments": [("functions.add:0", "add", '{"a": "seventeen", "c": 1}')],
    "unknown_tool": [("functions.launch:0", "launch", "{}")],
    "empty_arguments": [("functions.add:0", "add", "")],
    "rounds": [("functions.add:0", "add", '{"a": 0, "b": 1}')],
    "endless_call": [("functions.add:0", "add", '{"a": 1, "b": 1}')],
}


@pytest.mark.parametrize("scenario", CALLS)
@pytest.mark.parametrize("streamed", [True, False])
async def test_calls_are_put_together_untouched(scripted: Scripted, endpoint: Endpoint, scenario: str, streamed: bool) -> None:
    scripted.scenario(scenario)
    request = ask(tools=TOOLS)
    events = await collect(endpoint.stream(request)) if streamed else await endpoint.complete_chat(request)
    reply = reply_of(events)
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == CALLS[scenario]
    assert reply.finish_reason == ("length" if scenario == "cut_arguments" else "tool_calls")
    assert reply.thought


async def test_lost_calls_are_right_unstreamed(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("lost_call")
    request = ask(tools=TOOLS)
    streamed = reply_of(await collect(endpoint.stream(request)))
    assert (streamed.finish_reason, streamed.calls) == ("tool_calls", [])
    events = await endpoint.complete_chat(request)
    assert [call.name for call in reply_of(events).calls] == ["add"]
    assert events[-1] == Finished("tool_calls") and isinstance(events[-2], Usage)
    assert "stream" not in scripted.chats[-1].body and "stream_options" not in scripted.chats[-1].body


@pytest.mark.parametrize("scenario", ["reasoning", "reasoning_content", "thought_in_content"])
async def test_unstreamed_reply_is_the_same_reply(scripted: Scripted, endpoint: Endpoint, scenario: str) -> None:
    scripted.scenario(scenario)
    streamed, whole = reply_of(await collect(endpoint.stream(ask()))), reply_of(await endpoint.complete_chat(ask()))
    assert (whole.thought, whole.answer, whole.finish_reason) == (streamed.thought, streamed.answer, streamed.finish_reason)


async def test_a_tool_conversation_of_two_rounds(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("rounds", rounds=2)
    messages = [user("Add twice.")]
    for number in range(2):
        reply = reply_of(await collect(endpoint.stream(ChatRequest(messages, Sampling(), tools=TOOLS))))
        assert reply.calls[0].id == f"functions.add:{number}"
        messages += [assistant_in_loop(reply), tool_answer(reply.calls[0].id, f"r{number}")]
    final = reply_of(await collect(endpoint.stream(ChatRequest(messages, Sampling(), tools=TOOLS))))
    assert (final.answer, final.calls) == ("The result: r0 r1", [])
    assert [message["reasoning"] for message in scripted.chats[-1].body["messages"] if message["role"] == "assistant"] == [
        "Step 0.",
        "Step 1.",
    ]


async def test_leaked_markup_is_shown_for_what_it_is(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("leaked_markup")
    assert reply_of(await collect(endpoint.stream(ask()))).answer.startswith("<|tool_call_begin|>functions.add:0")


@pytest.mark.parametrize(("scenario", "code"), [("dies", "broke_off"), ("error_event", "error_event"), ("no_finish", "broke_off")])
async def test_a_reply_that_breaks_off_keeps_what_came(scripted: Scripted, endpoint: Endpoint, scenario: str, code: str) -> None:
    scripted.scenario(scenario)
    events, failure = await failing(endpoint.stream(ask()))
    assert failure.code == f"endpoint.{code}"
    reply = reply_of(events)
    assert reply.thought and THOUGHT.startswith(reply.thought)
    assert reply.finish_reason is None and reply.usage is not None and not reply.usage.final
    scripted.scenario("reasoning")
    assert reply_of(await collect(endpoint.stream(ask()))).answer == ANSWER, "the connection goes on"


async def test_raw_completion_is_verbatim(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("thought_in_content", cut_bytes=5)
    events = await collect(endpoint.stream_raw("<|im_user|>hi", Sampling(max_tokens=9, top_k=5)))
    reply = reply_of(events)
    assert (reply.thought, reply.answer) == ("", f"{THOUGHT}</think>\n\n{ANSWER}")
    assert events[-1] == Finished("stop") and isinstance(events[-2], Usage)
    sent = scripted.chats[-1]
    assert sent.path == "/v1/completions" and sent.body["prompt"] == "<|im_user|>hi"
    assert sent.body["top_k"] == 5 and sent.body["max_tokens"] == 9 and "messages" not in sent.body


async def test_counting_tokens(scripted: Scripted, endpoint: Endpoint) -> None:
    assert await endpoint.count_tokens(ask("one two three")) == 7
    with_tools = await endpoint.count_tokens(ask("one two three", tools=TOOLS))
    assert with_tools is not None and with_tools > 7
    scripted.missing = {"/tokenize"}
    assert await endpoint.count_tokens(ask()) is None


async def test_health(scripted: Scripted, endpoint: Endpoint) -> None:
    assert await endpoint.healthy()
    scripted.missing = {"/health"}
    assert await endpoint.healthy(), "its list of models answers"
    scripted.scenario("fails")
    scripted.missing = set()
    assert not await endpoint.healthy()
    await endpoint.aclose()
    assert not await endpoint.healthy()


async def test_a_gone_server_is_not_healthy_and_refuses() -> None:
    with running() as passing:
        endpoint = await Endpoint.connect(passing.base_url)
    assert not await endpoint.healthy()
    assert (await failing(endpoint.stream(ask())))[1].code == "endpoint.refused"
    assert await endpoint.count_tokens(ask()) is None
    await endpoint.aclose()


async def test_a_closed_endpoint_says_so(endpoint: Endpoint) -> None:
    await endpoint.aclose()
    assert (await failing(endpoint.stream(ask())))[1].code == "endpoint.closed"


async def test_as_sent_a_thought_in_the_content_stays_there() -> None:
    with running() as scripted:
        scripted.scenario("thought_in_content", thought="I think.", answer="Yes.")
        endpoint = await Endpoint.connect(scripted.base_url)
        endpoint.as_sent = True
        events = [event async for event in endpoint.stream(ChatRequest([user("hi")], Sampling()))]
        assert "".join(event.text for event in events if isinstance(event, AnswerDelta)) == "I think.</think>\n\nYes."
        assert not any(isinstance(event, ThoughtDelta) for event in events)
        assert await endpoint.version() == "0.32.0"
        scripted.missing.add("/version")
        assert await endpoint.version() is None
        await endpoint.aclose()
