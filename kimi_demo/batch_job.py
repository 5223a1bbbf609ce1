"""What a `batch` command is to run, settled before any engine starts: the file, the parameters, and of an earlier batch which rows."""

import argparse
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kimi_demo.batch_console import Console
from kimi_demo.batches.indices import Indices
from kimi_demo.batches.manifest import Manifest, read_manifest, sha256_of, sidecar
from kimi_demo.batches.reading import Options, Source, open_source
from kimi_demo.batches.results import read_results
from kimi_demo.batches.survey import Survey, survey
from kimi_demo.batches.versions import Which, again, manifest_of, require_same_rows, select
from kimi_demo.batches.writing import beside
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import DEFAULT_PRESET, PRESETS, Sampling
from kimi_demo.ui.parameters import sampling

AGAIN: dict[str, Which] = {"failed": "failed", "cut-off": "cut_off", "unfinished": "unfinished", "all": "all"}
NUMBERS = {"max_tokens": int, "temperature": float, "top_p": float, "top_k": int, "min_p": float, "seed": int}


@dataclass(frozen=True)
class Earlier:
    """A batch whose rows are run again. wanted: which of them."""

    manifest: Manifest
    which: Which
    wanted: Indices


@dataclass(frozen=True)
class Job:
    """What is to run, known before any engine starts."""

    source: Source
    found: Survey
    sha256: str
    sampling: Sampling
    thinking: bool
    earlier: Earlier | None = None

    @property
    def wanted(self) -> Indices | None:
        return self.earlier.wanted if self.earlier is not None else None

    def manifest(self, model: str, engine: str) -> Manifest:
        """Raises Failure: batches.no_rows, batches.nothing_again, batches.other_rows."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        fresh = manifest_of(
            self.source, self.found, self.sha256, self.sampling, thinking=self.thinking, model=model, engine=engine, created_at=now
        )
        if self.earlier is None:
            return fresh
        require_same_rows(self.earlier.manifest, fresh)
        changes = {"sampling": fresh.sampling, "thinking": fresh.thinking, "model": model, "engine": engine}
        return again(self.earlier.manifest, self.earlier.which, len(self.earlier.wanted), now, **changes)


def prepared(given: argparse.Namespace, console: Console) -> Job | None:
    """None where rows cannot be read and nobody has said to skip them. Raises Failure for everything else that is wrong beforehand."""
    if given.output.suffix.lower() not in (".jsonl", ".ndjson", ".json"):
        raise Failure("batches.output_name", path=given.output)
    if given.output.exists() and not given.resume:
        raise Failure("batches.exists", path=given.output)
    _require_own_name(given)
    if given.rows_at_once < 1:
        raise Failure("parameters.at_least", field="--rows-at-once", value=given.rows_at_once, limit=1)
    earlier = _earlier(given)
    chosen, thinking = _parameters(given, earlier)
    options = Options(
        format=given.input_format,
        encoding=given.encoding,
        column=given.column,
        header=not given.no_header,
        keep_blank=given.keep_blank,
        keep_duplicates=not given.drop_duplicates,
    )
    source = open_source(given.file, options)
    found = survey(source)
    console.surveyed(given.file, found, options)
    if found.bad_rows:
        console.bad_rows(found, skipped=given.skip_bad)
        if not given.skip_bad:
            return None
    job = Job(source, found, sha256_of(given.file), chosen, thinking, earlier)
    job.manifest("", "")  # raises where no row is left
    return job


def _require_own_name(given: argparse.Namespace) -> None:
    """`in.csv -o in.jsonl --format csv` must not write over the prompts. Raises Failure("batches.format_exists", path=…, format=…)."""
    path = beside(given.output, given.format)
    if given.format == "jsonl" or not path.exists():
        return
    read: list[Path] = [each for each in (given.file, given.of) if each is not None and each.exists()]
    if not given.resume or any(path.samefile(each) for each in read):
        raise Failure("batches.format_exists", path=path, format=given.format)


def _earlier(given: argparse.Namespace) -> Earlier | None:
    """Raises Failure: batches.again_of, batches.no_manifest, batches.bad_manifest, batches.unreadable, batches.nothing_again."""
    if (given.again is None) != (given.of is None):
        raise Failure("batches.again_of")
    if given.again is None:
        return None
    manifest = read_manifest(given.of)
    if manifest is None:
        raise Failure("batches.no_manifest", path=given.of, sidecar=sidecar(given.of).name)
    wanted = select(read_results(given.of), AGAIN[given.again])
    if not len(wanted):
        raise Failure("batches.nothing_again")
    return Earlier(manifest, AGAIN[given.again], wanted)


def _parameters(given: argparse.Namespace, earlier: Earlier | None) -> tuple[Sampling, bool]:
    """What the flags say; where they say nothing, the earlier batch's parameters, or the default preset's. Raises Failure."""
    changes = {name: getattr(given, name) for name in NUMBERS}
    if earlier is None or given.preset is not None:
        preset = given.preset or DEFAULT_PRESET
        chosen, thinking = sampling(preset, **changes), PRESETS[preset].thinking
    else:
        checked = sampling(DEFAULT_PRESET, **changes)
        before = Sampling(**earlier.manifest.sampling)
        chosen = before.model_copy(update={name: getattr(checked, name) for name, value in changes.items() if value is not None})
        thinking = earlier.manifest.thinking
    return chosen, thinking if given.thinking is None else given.thinking
