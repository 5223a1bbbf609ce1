"""A run as a file to keep or pass on. Pure; the owner's id is not in it, since who holds that sees all of the owner's runs."""

import json

from kimi_demo.dialect.events import EVENT
from kimi_demo.runs.run import Run

FORMAT = 1


def as_json(run: Run) -> str:
    """{"format", "id", "kind", "group", "title", "created_at", "state", "events": [{"at": seconds after the start, "type", …}]}.

    Every event just as it happened; ASCII only, so that any text a model writes survives every program.
    """
    whole = {
        "format": FORMAT,
        "id": run.id,
        "kind": run.kind,
        "group": run.group,
        "title": run.title,
        "created_at": run.created_at.isoformat(),
        "state": run.state,
        "events": [{"at": round(item.at, 6), **EVENT.dump_python(item.event)} for item in run.entries],
    }
    return json.dumps(whole, indent=1, default=str) + "\n"
