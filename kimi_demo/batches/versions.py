"""Running rows again: as a further version beside the first, in a file of its own, so that the two can be compared."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from kimi_demo.batches.indices import Indices
from kimi_demo.batches.manifest import Manifest
from kimi_demo.batches.reading import Source
from kimi_demo.batches.results import Result
from kimi_demo.batches.survey import Survey
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling

Which = Literal["all", "failed", "cut_off", "unfinished"]
"""unfinished: failed or cut off."""


def select(results: Iterable[Result], which: Which) -> Indices:
    """The rows to run again."""
    chosen = Indices()
    for result in results:
        failed, cut = result.error is not None, result.cut_off
        if which == "all" or (failed and which in ("failed", "unfinished")) or (cut and which in ("cut_off", "unfinished")):
            chosen.add(result.index)
    return chosen


def manifest_of(
    source: Source,
    found: Survey,
    sha256: str,
    sampling: Sampling,
    *,
    thinking: bool,
    model: str,
    engine: str,
    created_at: str,
) -> Manifest:
    """The manifest of a first run over all rows of `source`. sha256: of its bytes. Raises Failure("batches.no_rows")."""
    if not found.rows:
        raise Failure("batches.no_rows", path=source.path, bad=found.bad_rows, blank=found.blank)
    return Manifest(
        input=str(source.path),
        input_sha256=sha256,
        reading=source.described(),
        rows=found.rows,
        sampling=sampling.model_dump(mode="json", exclude_none=True),
        thinking=thinking,
        model=model,
        engine=engine,
        columns=found.columns,
        created_at=created_at,
    )


def again(before: Manifest, which: Which, rows: int, created_at: str, **changes: Any) -> Manifest:
    """The manifest of a further version. rows: how many `select` chose; changes: sampling, thinking, model, engine where they differ."""
    if not rows:
        raise Failure("batches.nothing_again")
    return replace(before, rows=rows, selection={"again": before.fingerprint, "which": which}, created_at=created_at, **changes)


def require_same_rows(first: Manifest, second: Manifest) -> None:
    """Raises Failure("batches.other_rows") unless row 7 of one is row 7 of the other."""
    if (first.input_sha256, first.reading) != (second.input_sha256, second.reading):
        raise Failure("batches.other_rows")
