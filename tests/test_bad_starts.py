"""Starts that cannot work: one clear sentence where it happened, and the page stays up."""

import re
from html import unescape
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests import scripted_server
from tests.demo import Demo, running


def badge(demo: Demo) -> str:
    """What the badge says once the engine has made up its mind."""
    while True:
        answer = httpx.get(f"{demo.address}/kimi/badge", timeout=60).json()
        if answer["settled"]:
            return unescape(re.sub(r"<[^>]*>", " ", answer["html"]))


def asked(demo: Demo) -> str:
    """What an API client is told."""
    with pytest.raises(AppError) as told:
        Client(demo.address, verbose=False).predict("hello", api_name="/chat")
    return str(told.value)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with running(tmp_path, "--base-url", "http://127.0.0.1:9/v1") as demo:
        assert "Nothing is listening at http://127.0.0.1:9" in badge(demo)
        assert "Nothing is listening at http://127.0.0.1:9" in asked(demo)
        assert httpx.get(demo.address, timeout=60).status_code == 200


def test_an_address_without_a_scheme(tmp_path: Path) -> None:
    with running(tmp_path, "--base-url", "localhost:8000") as demo:
        assert "does not say http:// or https://" in badge(demo)


def test_a_server_that_needs_a_key_and_then_gets_it(tmp_path: Path) -> None:
    with scripted_server.running() as server:
        server.api_key = "sesame"
        with running(tmp_path / "without", "--base-url", server.base_url) as demo:
            assert "needs an API key" in badge(demo)
        with running(tmp_path / "with", "--base-url", server.base_url, KIMI_DEMO_API_KEY="sesame") as demo:
            answer = Client(demo.address, verbose=False).predict("[[reasoning]]", api_name="/chat")
            assert answer["finish_reason"] == "stop" and answer["reasoning"] and answer["answer"]
            assert "sesame" not in httpx.get(f"{demo.address}/config", timeout=60).text


def test_a_server_that_comes_up_later_is_found_without_a_restart(tmp_path: Path) -> None:
    with scripted_server.running() as server:
        server.scenario("loading")
        with running(tmp_path, "--base-url", server.base_url) as demo:
            assert "loading" in asked(demo).lower()
            server.scenario("reasoning")
            assert Client(demo.address, verbose=False).predict("hello", api_name="/chat")["answer"]


def test_a_web_page_instead_of_a_server(tmp_path: Path) -> None:
    with scripted_server.running() as server:
        server.scenario("html_page")
        with running(tmp_path, "--base-url", server.base_url) as demo:
            assert "answers with a web page" in badge(demo)


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with running(tmp_path, "--model", "/no/such/folder") as demo:
        assert "There is no model at /no/such/folder." in badge(demo)
        assert "There is no model at /no/such/folder." in asked(demo)
