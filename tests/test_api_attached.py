"""The named endpoints of a page that is attached to somebody's server: all three are answered by that server, and need no vLLM."""

from collections.abc import Iterator

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests import scripted_server
from tests.demo import running
from tests.scripted_server import Scripted


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with scripted_server.running() as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Scripted, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running(tmp_path_factory.mktemp("attached"), "--base-url", server.base_url) as demo:
        yield Client(demo.address, verbose=False, httpx_kwargs={"timeout": 120})


def test_a_batch_is_answered_by_the_server_in_the_order_given(client: Client, server: Scripted) -> None:
    server.reset()
    server.scenario("reasoning")
    prompts = ["[[long_thought tokens=100 rate=50]] a", "[[rejected]]", *(f"prompt {number}" for number in range(100))]
    rows = client.predict(prompts, True, 77, None, 5, api_name="/batch")
    assert [row["prompt"] for row in rows] == prompts
    assert rows[1]["finish_reason"] == "error" and rows[1]["error"]
    assert all(row["reasoning"] and row["answer"] and row["finish_reason"] == "stop" and row["tokens"] for row in rows[2:])
    bodies = [request.body for request in server.chats]
    assert {body["max_tokens"] for body in bodies} == {77} and sorted(body["seed"] for body in bodies) == list(range(5, 107))


def test_a_server_in_trouble_is_one_sentence(client: Client, server: Scripted) -> None:
    server.reset()
    server.api_key = "sesame"
    try:
        with pytest.raises(AppError) as told:
            client.predict(["a", "b", "c"], api_name="/batch")
    finally:
        server.api_key = None
    assert "API key" in str(told.value) and "ExceptionGroup" not in str(told.value)
