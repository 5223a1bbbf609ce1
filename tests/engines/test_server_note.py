"""The note that says where the page's own server is: written when it answers, gone with it, readable by its user alone."""

import asyncio
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.engines.accelerators import Lease
from kimi_demo.engines.chat_engine import ChatEngine
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.model_folder import ModelFolder
from kimi_demo.engines.server_note import NAME, NotedServer, ServerNote
from kimi_demo.settings import Settings
from tests.engines.living import until
from tests.engines.test_chat_engine import Connected, FakeLaunch


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Of a demo whose vLLM is fake_vllm.py."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")

    async def connect(*args: Any, **named: Any) -> Connected:
        return Connected()

    def launch(settings: Settings, path: str) -> Launch:
        return FakeLaunch(path, settings.data / "logs", extra=("serve",), on_cpu=False)

    monkeypatch.setattr(Launch, "from_settings", launch)
    monkeypatch.setattr(Endpoint, "connect", connect)
    return Settings(model=str(model), data=tmp_path / "data")


async def test_the_pages_server_is_noted_while_it_answers(settings: Settings) -> None:
    note, guardian = ServerNote(settings.data), Guardian()
    engine = ChatEngine(settings, ModelFolder(settings), Lease(), guardian, note)
    try:
        assert note.read() is None
        starting: list[bool] = []
        await engine.ready(lambda event: starting.append(note.is_starting()))
        assert starting[-1] and not note.is_starting()
        found = note.read()
        assert found is not None and engine._server is not None
        assert (found.base_url, found.api_key) == (engine._server.base_url, engine._server.api_key)
        assert found.command and found.api_key not in " ".join(found.command)
        assert stat.S_IMODE((settings.data / NAME).stat().st_mode) == 0o600
    finally:
        await engine.stop()
        guardian.close()
    assert note.read() is None


async def test_a_server_that_dies_is_noted_no_more(settings: Settings) -> None:
    note, guardian = ServerNote(settings.data), Guardian()
    engine = ChatEngine(settings, ModelFolder(settings), Lease(), guardian, note)
    try:
        await engine.ready(lambda event: None)
        assert engine._server is not None and note.read() is not None
        os.kill(engine._server.pid, signal.SIGKILL)
        assert await asyncio.to_thread(until, lambda: note.read() is None, 20.0)
    finally:
        await engine.stop()
        guardian.close()


async def test_a_command_notes_nothing_and_takes_no_note_away(settings: Settings) -> None:
    note, guardian = ServerNote(settings.data), Guardian()
    pages = NotedServer(base_url="http://127.0.0.1:1/v1", api_key="k", pid=1)
    note.write(pages)
    engine = ChatEngine(settings, ModelFolder(settings), Lease(), guardian)
    try:
        await engine.ready(lambda event: None)
        assert note.read() == pages
    finally:
        await engine.stop()
        guardian.close()
    assert note.read() == pages


@pytest.mark.parametrize("written", [b"", b"{", b"[]", b'{"base_url": "x"}', b'{"pid": "a"}', b"\xff"])
def test_a_note_that_cannot_be_read_is_none(written: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(written)
    assert ServerNote(tmp_path).read() is None
