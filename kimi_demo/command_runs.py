"""A command's run goes into the store that the page uses, also while the page is open."""

from collections.abc import Sequence
from pathlib import Path

from kimi_demo.dialect.events import Asked, Ended, Failed, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.conversations import shortened
from kimi_demo.runs.rows import whole
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store

OWNER = "command"
"""Owner of what commands ran. No browser's cookie holds it: such an id is 32 hexadecimal digits."""


def keep_run(path: Path, kind: str, asked: Asked, entries: Sequence[Timed], failure: Failure | None = None) -> Run:
    """Writes a run that is over, in one go: a page that starts meanwhile takes what has no end yet for a dead page's.

    path: of the store. Raises Failure: store.newer, store.foreign, store.corrupt, store.unusable, store.write.
    """
    last = entries[-1].at if entries else 0.0
    told = [] if failure is None else [Timed(last, Failed(failure.code, failure.params))]
    end = Timed(last, Ended("done" if failure is None else "failed"))
    question = Asked(whole(asked.text), asked.parameters)
    run = Run(owner=OWNER, kind=kind, title=shortened(whole(asked.text)), entries=[Timed(0.0, question), *entries, *told, end])
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Failure("store.unusable", path=path, error=error) from error
    store = Store(path, alone=False)
    try:
        store.add(run)
        for item in run.entries:
            store.write(run.id, item)
        store.flush()
        if store.trouble is not None:
            raise store.trouble
    finally:
        store.close()
    return run
