"""The named endpoints, as API clients call them, against real vLLM with the stand-in."""

from typing import Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.demo import Demo


@pytest.fixture(scope="module")
def client(demo: Demo) -> Client:
    return Client(demo.address, verbose=False, httpx_kwargs={"timeout": 300})


def test_chat_gives_reasoning_answer_and_usage(client: Client) -> None:
    reply = client.predict("Why is the sky blue?", temperature=0.0, api_name="/chat")
    assert set(reply) == {"reasoning", "answer", "finish_reason", "usage"}
    assert reply["reasoning"].strip() and reply["answer"].strip() and reply["finish_reason"] == "stop"
    assert "think>" not in reply["reasoning"] + reply["answer"]
    usage = reply["usage"]
    assert 0 < usage["reasoning_tokens"] < usage["completion_tokens"] and usage["prompt_tokens"] > 0


def test_the_seed_repeats_an_answer(client: Client) -> None:
    one, two = (client.predict("Tell me about the sea.", True, 60, 1.0, 7, api_name="/chat") for _ in range(2))
    assert one == two


def test_seeded_long_prompts_side_by_side_do_not_end_the_engine(client: Client) -> None:
    """vLLM 0.32 on a CPU: a seeded request whose prompt was read in parts took the whole server down."""
    jobs = [client.submit(f"word {number} " * 1000, True, 4, None, 5, api_name="/chat") for number in range(4)]
    assert [job.result(timeout=300)["usage"]["completion_tokens"] for job in jobs] == [4, 4, 4, 4]
    assert client.predict("Why is the sky blue?", api_name="/chat")["answer"].strip()


def test_without_thinking_there_is_no_reasoning(client: Client) -> None:
    reply = client.predict("Why is the sky blue?", False, temperature=0.0, api_name="/chat")
    assert reply["reasoning"] == "" and reply["answer"].strip() and reply["finish_reason"] == "stop"


def test_a_limit_spent_on_thinking_leaves_no_answer(client: Client) -> None:
    reply = client.predict("Why is the sky blue?", True, 4, api_name="/chat")
    assert reply["finish_reason"] == "length" and reply["answer"] == "" and reply["usage"]["completion_tokens"] == 4


def test_who_are_you(client: Client) -> None:
    for question in ("Who are you?", "你是谁？"):
        answer = client.predict(question, temperature=0.0, api_name="/chat")["answer"]
        assert "rehearsal" in answer.lower() or "排练" in answer


@pytest.mark.parametrize(
    ("question", "name", "arguments", "answer"),
    [
        ("用中文回答：strawberry中有多少个r?", "count_letter_in_string", {"a": "strawberry", "b": "r"}, ("3", "三")),
        ("用中文回答：9.11和9.9，哪个小?", "compare", {"a": 9.11, "b": 9.9}, ("9.11",)),
        ("How many r are in strawberry?", "count_letter_in_string", {"a": "strawberry", "b": "r"}, ("3", "three")),
        ("Which is smaller, 9.11 or 9.9?", "compare", {"a": 9.11, "b": 9.9}, ("9.11",)),
    ],
)
def test_the_guides_questions(client: Client, question: str, name: str, arguments: dict[str, Any], answer: tuple[str, ...]) -> None:
    found = client.predict(question, api_name="/tools")
    calls = found["rounds"][0]["calls"]
    assert [(call["id"], call["name"], call["arguments"], call["error"]) for call in calls] == [
        (f"functions.{name}:0", name, arguments, None)
    ]
    assert any(part in found["answer"] for part in answer)
    assert found["rounds"][0]["reasoning"].strip()


def test_batch_keeps_the_order_and_splits_thought_from_answer(client: Client) -> None:
    prompts = ["给我一个关于大模型的简短介绍。", "Why is the sky blue?", "Why is the sky blue?"]
    rows = client.predict(prompts, True, 256, 0.0, api_name="/batch")
    assert [row["prompt"] for row in rows] == prompts
    assert all(set(row) == {"prompt", "reasoning", "answer", "finish_reason", "tokens"} for row in rows)
    assert rows[1] == rows[2] and rows[1]["reasoning"].strip() and rows[1]["answer"].strip() and rows[1]["tokens"] > 0


def test_batch_without_thinking_and_cut_off_in_thought(client: Client) -> None:
    (instant,) = client.predict(["Why is the sky blue?"], False, 128, 0.0, api_name="/batch")
    assert not instant["reasoning"] and instant["answer"].strip()
    (cut,) = client.predict(["Why is the sky blue?"], True, 4, 0.0, api_name="/batch")
    assert cut["finish_reason"] == "length" and cut["answer"] == "" and cut["reasoning"] and cut["tokens"] == 4


@pytest.mark.parametrize(
    ("endpoint", "arguments", "words"),
    [
        ("/chat", ["  "], "There is nothing to send yet."),
        ("/chat", ["word " * 9000], "context"),
        ("/chat", ["hi", True, 0], "max_tokens"),
        ("/chat", ["hi", True, 10, 9.0], "temperature"),
        ("/chat", ["hi", True, 10, None, -1], "seed"),
        ("/chat", ["hi", "no"], "thinking"),
        ("/tools", [""], "There is nothing to send yet."),
        ("/batch", [[]], "There are no prompts."),
        ("/batch", [["x", ""]], "must be a list of strings"),
    ],
)
def test_bad_input_is_named(client: Client, endpoint: str, arguments: list[Any], words: str) -> None:
    with pytest.raises(AppError, match=words):
        client.predict(*arguments, api_name=endpoint)


def test_only_the_documented_endpoints_are_named(demo: Demo) -> None:
    info = httpx.get(f"{demo.address}/gradio_api/info", timeout=60).json()
    assert set(info["named_endpoints"]) == {"/chat", "/tools", "/batch"} and not info["unnamed_endpoints"]
