"""Going on, raw prompts and thinking budgets with vLLM itself and the stand-in."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import jsonschema
import pytest

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import AnswerDelta, Event, RoundStarted, ThoughtDelta, Timed
from kimi_demo.dialect.reply import Reply, rounds
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.endpoint_prompt import continued
from kimi_demo.engines.vision import Vision
from tests.engines.life import Life

QUESTION = ChatRequest([user("Why is the sky blue?")], Sampling(temperature=0, max_tokens=400))


@pytest.fixture
async def endpoint(life: Life) -> AsyncIterator[Endpoint]:
    connected = await Endpoint.connect(life.server.base_url, life.server.api_key, kind="vllm")
    yield connected
    await connected.aclose()


async def reply_of(stream: AsyncIterator[Event]) -> Reply:
    events = [event async for event in stream]
    return rounds([Timed(0.0, event) for event in [RoundStarted(0), *events]])[0]


def limited(tokens: int) -> ChatRequest:
    return replace(QUESTION, sampling=QUESTION.sampling.model_copy(update={"max_tokens": tokens}))


async def test_a_continued_answer_is_the_one_that_was_cut_off_and_nothing_lands_in_the_thought(endpoint: Endpoint) -> None:
    assert endpoint.renders and endpoint.has_raw
    whole = await reply_of(endpoint.stream(QUESTION))
    assert whole.usage is not None and whole.usage.completion_tokens and whole.usage.reasoning_tokens and whole.finish_reason == "stop"
    cut = await reply_of(endpoint.stream(limited((whole.usage.reasoning_tokens + whole.usage.completion_tokens) // 2 + 1)))
    assert cut.finish_reason == "length" and cut.answer and cut.thought == whole.thought
    prompt = await endpoint.render(QUESTION)
    assert prompt is not None and prompt.endswith("<think>")
    events = [event async for event in endpoint.stream_raw(continued(prompt, cut.thought, cut.answer), QUESTION.sampling, as_rendered=True)]
    assert not any(isinstance(event, ThoughtDelta) for event in events)
    rest = "".join(event.text for event in events if isinstance(event, AnswerDelta))
    assert rest and "</think>" not in rest
    # The same words, greedily; the text so far is tokenized anew, which may cut its last word differently.
    assert (cut.answer + rest)[: len(cut.answer) + 8] == whole.answer[: len(cut.answer) + 8]


async def test_a_continued_thought_ends_in_an_answer(endpoint: Endpoint) -> None:
    cut = await reply_of(endpoint.stream(limited(4)))
    assert cut.cut_off_in_thought and cut.thought
    prompt = await endpoint.render(QUESTION)
    assert prompt is not None
    more = await reply_of(endpoint.stream_raw(continued(prompt, cut.thought, ""), QUESTION.sampling, in_thought=True, as_rendered=True))
    assert more.thought and more.answer.strip() and more.finish_reason == "stop"


async def test_a_budget_cuts_the_thought(endpoint: Endpoint) -> None:
    request = replace(QUESTION, sampling=QUESTION.sampling.model_copy(update={"thinking_token_budget": 3}))
    reply = await reply_of(endpoint.stream(request))
    assert reply.usage is not None and reply.usage.reasoning_tokens is not None and reply.usage.reasoning_tokens <= 3
    assert endpoint.takes_budget is True


SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["blue", "red"]}, "sure": {"type": "boolean"}},
    "required": ["colour", "sure"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("thinking", [True, False])
async def test_an_answer_follows_its_schema_and_the_thought_is_free(endpoint: Endpoint, thinking: bool) -> None:
    request = ChatRequest([user("Which colour has the sky?")], Sampling(temperature=0, max_tokens=400, json_schema=SCHEMA), thinking)
    reply = await reply_of(endpoint.stream(request))
    assert reply.finish_reason == "stop"
    jsonschema.validate(json.loads(reply.answer), SCHEMA)
    assert bool(reply.thought.strip()) == thinking
    if thinking:
        with pytest.raises(ValueError):
            json.loads(reply.thought)


async def test_a_text_model_does_not_see_and_goes_on_answering(endpoint: Endpoint) -> None:
    assert await Vision().sees(endpoint) is False
    assert (await reply_of(endpoint.stream(limited(8)))).thought


async def test_a_raw_prompt_and_its_tokens(endpoint: Endpoint) -> None:
    prompt = "我想问你，什么是深度学习算法？<think>\n"
    tokens = await endpoint.tokens_of(prompt)
    assert tokens is not None and "".join(text for text, _ in tokens.pieces) == prompt
    assert ("<think>", 1) in tokens.pieces and sum(size for _, size in tokens.pieces) == tokens.count
    reply = await reply_of(endpoint.stream_raw(prompt, Sampling(temperature=0, max_tokens=64)))
    assert reply.answer and reply.usage is not None and reply.usage.prompt_tokens == tokens.count
