"""The badge in the header."""

from types import SimpleNamespace
from typing import Any

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.chat_engine import EngineState
from kimi_demo.settings import Settings
from kimi_demo.ui.badge import badge
from kimi_demo.ui.texts import texts


@pytest.mark.parametrize(("base_url", "shown"), [("http://[::1", ""), ("http://me:secret@host:8000/v1", "host:8000")])
def test_it_shows_the_failure_of_any_address_and_never_a_password(base_url: str, shown: str) -> None:
    state = EngineState("failed", 0.0, failure=Failure("server.off"))
    engine: Any = SimpleNamespace(state=state, endpoint=None, remote=True)
    html = badge(Settings(base_url=base_url), engine, texts("en"), operator=False).html
    assert f'<span class="where">{shown}</span>' in html and "badge-failure" in html and "secret" not in html


@pytest.mark.parametrize(
    ("condition", "words"), [("well", "ready"), ("stuck", "ready"), ("silent", "not answering"), ("stopped", "not answering")]
)
def test_a_server_that_does_not_answer_is_not_called_ready(condition: Any, words: str) -> None:
    engine: Any = SimpleNamespace(state=EngineState("ready", 0.0), endpoint=None, remote=True)
    html = badge(Settings(base_url="http://host/v1"), engine, texts("en"), operator=False, condition=condition).html
    assert html.endswith(f">{words}</span>") and ('data-state="failed"' in html) == (words != "ready")
