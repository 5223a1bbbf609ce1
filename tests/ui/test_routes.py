"""Our own routes beside Gradio's."""

import json

from kimi_demo.dialect.events import Asked, Ended, RowFinished, Timed
from kimi_demo.runs.run import Run
from kimi_demo.ui.routes import _rows


def test_half_a_surrogate_pair_in_one_row_does_not_cut_the_export_off() -> None:
    rows = [RowFinished(index, prompt=prompt, answer="好") for index, prompt in enumerate(["a\ud800b", "c"])]
    run = Run(owner="me", kind="batch", title="t", entries=[Timed(0.0, event) for event in (Asked("?"), *rows, Ended("done"))])
    exported = b"".join(_rows(run)).decode().splitlines()
    assert [json.loads(line)["prompt"] for line in exported] == ["a\ud800b", "c"] and "好" in exported[0]
