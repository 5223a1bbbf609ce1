"""Whom a command talks to: the server it was given, the page's, or its own."""

import os
from pathlib import Path

import pytest

from kimi_demo import command_endpoint
from kimi_demo.dialect.events import Event
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.server_note import NAME, NotedServer, ServerNote
from kimi_demo.settings import Settings
from tests.scripted_server import MODEL_ID, running


def noted(data: Path, base_url: str, key: str) -> None:
    ServerNote(data).write(NotedServer(base_url=base_url, api_key=key, pid=os.getpid(), command=("python", "-m", "vllm")))


async def test_the_pages_server_is_used(tmp_path: Path) -> None:
    with running(api_key="secret") as scripted:
        noted(tmp_path, scripted.base_url, "secret")
        async with command_endpoint.command_endpoint(Settings(data=tmp_path), lambda event: None) as found:
            assert found.whose == "page" and found.endpoint.info.id == MODEL_ID and found.command == ("python", "-m", "vllm")
            assert await found.endpoint.healthy()


async def test_a_given_address_comes_first(tmp_path: Path) -> None:
    with running(api_key="secret") as pages, running() as given:
        noted(tmp_path, pages.base_url, "secret")
        async with command_endpoint.command_endpoint(Settings(data=tmp_path, base_url=given.base_url), lambda event: None) as found:
            assert found.whose == "given" and found.endpoint.base_url == given.base_url and found.command == ()


@pytest.mark.parametrize("why", ["gone", "another key", "another model"])
async def test_where_the_pages_server_will_not_do_the_command_starts_its_own(why: str, tmp_path: Path) -> None:
    """Its own is a model folder that is not there: the failure shows that it was tried."""
    with running(api_key="secret") as scripted:
        noted(tmp_path, scripted.base_url if why != "gone" else "http://127.0.0.1:9/v1", "secret" if why != "another key" else "old")
        settings = Settings(data=tmp_path, model="/models/elsewhere" if why == "another model" else None)
        if why != "another model":
            settings = settings.model_copy(update={"model": MODEL_ID})
        with pytest.raises(Failure) as caught:
            async with command_endpoint.command_endpoint(settings, lambda event: None):
                pass
        assert not caught.value.code.startswith("endpoint.")


async def test_a_page_whose_server_is_still_starting_is_waited_for(tmp_path: Path) -> None:
    note, told = ServerNote(tmp_path), list[str]()
    note.write(NotedServer(pid=os.getpid()))

    def on_event(event: Event) -> None:
        told.append(getattr(event, "name", ""))
        if len(told) == 1:
            noted(tmp_path, scripted.base_url, "secret")

    with running(api_key="secret") as scripted:
        async with command_endpoint.command_endpoint(Settings(data=tmp_path), on_event) as found:
            assert found.whose == "page" and set(told) == {"server.pages"}


def test_the_note_of_a_page_that_was_killed_is_not_waited_for(tmp_path: Path) -> None:
    note = ServerNote(tmp_path)
    assert not note.is_starting()
    note.write(NotedServer(pid=2**22 + 7))  # above Linux's highest number of a process
    assert not note.is_starting()
    note.write(NotedServer(pid=os.getpid()))
    assert note.is_starting()
    os.utime(tmp_path / NAME, (1, 1))  # written before this process was born, so it was another one's
    assert not note.is_starting()
