"""A run as a file."""

import json

from kimi_demo.dialect.events import EVENT, AnswerDelta, Asked, Ended, Event
from kimi_demo.runs.export import as_json
from kimi_demo.runs.run import Run


def test_the_file_holds_the_run_and_its_events_but_not_the_owner() -> None:
    run = Run(owner="secret-owner", kind="chat", title="标题", group="g")
    events: list[Event] = [Asked("你好", {"thinking": True}), AnswerDelta("🍓\ud83c"), Ended("done")]
    for event in events:
        run.append(event)
    text = as_json(run)
    whole = json.loads(text)
    assert {name: whole[name] for name in ("format", "id", "kind", "group", "title", "state")} == {
        "format": 1,
        "id": run.id,
        "kind": "chat",
        "group": "g",
        "title": "标题",
        "state": "done",
    }
    assert whole["created_at"] == run.created_at.isoformat() and whole["created_at"].endswith("+00:00")
    at = [event.pop("at") for event in whole["events"]]
    assert at == sorted(at)
    assert [EVENT.validate_python(event) for event in whole["events"]] == events
    assert "secret-owner" not in text and text.isascii()
