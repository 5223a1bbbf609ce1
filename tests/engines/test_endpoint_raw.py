"""Raw prompts, and going on with a reply that was cut off, against the scripted server."""

from collections.abc import AsyncIterator, Iterator

import pytest

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import AnswerDelta, Finished, Remark, ThoughtDelta
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.endpoint_prompt import continued, is_text
from tests.scripted_server import Scripted, running

REQUEST = ChatRequest([user("hi")], Sampling(max_tokens=64))
OPENED = "<|im_user|>user<|im_middle|>hi<|im_end|><|im_assistant|>assistant<|im_middle|><think>"


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


async def test_the_prompt_that_the_template_renders(endpoint: Endpoint) -> None:
    assert endpoint.renders and endpoint.has_raw
    assert await endpoint.render(REQUEST) == OPENED
    off = ChatRequest([user("hi")], Sampling(), thinking=False)
    assert await endpoint.render(off) == OPENED + "</think>"


@pytest.mark.parametrize(
    ("prompt", "thought", "answer", "expected"),
    [
        ("…<think>", "T", "A", "…<think>T</think>A"),
        ("…<think>\n", "T", "A", "…<think>\nT</think>A"),
        ("…<think>", "T", "", "…<think>T"),  # it goes on thinking
        ("…<think></think>", "", "A", "…<think></think>A"),
        ("…assistant<|im_middle|>", "T", "A", "…assistant<|im_middle|><think>T</think>A"),
        ("…assistant<|im_middle|>", "", "A", "…assistant<|im_middle|>A"),
    ],
)
def test_what_is_sent_to_go_on(prompt: str, thought: str, answer: str, expected: str) -> None:
    assert continued(prompt, thought, answer) == expected


def test_a_conversation_with_an_image_is_no_text() -> None:
    assert is_text([user("hi"), {"role": "user", "content": [{"type": "text", "text": "x"}]}, {"role": "assistant", "content": None}])
    assert not is_text([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}])


async def test_the_tokens_of_a_prompt(endpoint: Endpoint) -> None:
    tokens = await endpoint.tokens_of("我想问你<think>\n")
    assert tokens is not None
    assert "".join(text for text, _ in tokens.pieces) == "我想问你<think>\n" and ("<think>", 1) in tokens.pieces
    assert tokens.count == len(tokens.pieces)


async def test_a_raw_completion_shows_every_mark(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("thought_in_content", thought="T", answer="A")
    events = [event async for event in endpoint.stream_raw("p<think>\n", Sampling(temperature=0.0, max_tokens=9))]
    assert "".join(event.text for event in events if isinstance(event, AnswerDelta)) == "T</think>\n\nA"
    body = scripted.chats[-1].body
    assert (body["prompt"], body["temperature"], body["max_tokens"]) == ("p<think>\n", 0.0, 9) and "add_special_tokens" not in body


async def test_a_thought_that_goes_on_is_split_at_its_end(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("thought_in_content", thought=" more", answer="A")
    events = [event async for event in endpoint.stream_raw(OPENED + "T", Sampling(), in_thought=True, as_rendered=True)]
    assert "".join(event.text for event in events if isinstance(event, ThoughtDelta)) == " more"
    assert "".join(event.text for event in events if isinstance(event, AnswerDelta)) == "A"
    assert scripted.chats[-1].body["add_special_tokens"] is False


async def test_a_thought_that_ends_without_its_mark_is_not_given_again(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("answer_only", answer=" more")
    events = [event async for event in endpoint.stream_raw(OPENED + "T", Sampling(), in_thought=True)]
    assert not any(isinstance(event, AnswerDelta) for event in events) and events[-1] == Finished("stop")


async def test_servers_that_lack_something_say_so(scripted: Scripted) -> None:
    scripted.missing = {"/v1/completions", "/tokenize"}
    endpoint = await Endpoint.connect(scripted.base_url)
    assert not endpoint.has_raw and not endpoint.renders
    assert await endpoint.render(REQUEST) is None and await endpoint.tokens_of("x") is None
    await endpoint.aclose()


async def test_a_server_without_a_reasoning_parser_is_named(scripted: Scripted, endpoint: Endpoint) -> None:
    scripted.scenario("thought_in_content")
    events = [event async for event in endpoint.stream(REQUEST)]
    assert Remark("no_reasoning_parser") in events
    scripted.scenario("reasoning")
    assert not any(isinstance(event, Remark) for event in [event async for event in endpoint.stream(REQUEST)])
