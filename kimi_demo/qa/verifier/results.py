"""Results of verifier requests: a line each in a journal, in the shape of K2 Vendor Verifier's results.jsonl, and their sums."""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.metrics import CALLS, SchemaAccuracy, Trigger, trigger


@dataclass(frozen=True)
class Result:
    """data_index: the request's line. tool_calls_valid: None unless it ended with tool_calls and holds calls. problems: what is wrong
    with them. response: {"reasoning", "content", "tool_calls"}, or {"error"}."""

    data_index: int
    status: Literal["success", "failed"]
    finish_reason: str | None = None
    tool_calls_valid: bool | None = None
    problems: list[str] = field(default_factory=list)
    response: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    duration_ms: int = 0
    hash: str = ""
    last_run_at: str = ""


@dataclass(frozen=True)
class Summary:
    """Named as in the verifier's summary.json; tool_call_* are over the requests that a reference run has too."""

    model: str
    success_count: int
    failure_count: int
    finish_stop: int
    finish_tool_calls: int
    finish_others: int
    finish_others_detail: dict[str, int]
    schema_validation_error_count: int
    successful_tool_call_count: int
    schema_accuracy: float | None
    reference_requests: int = 0
    tool_call_precision: float | None = None
    tool_call_recall: float | None = None
    tool_call_f1: float | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"


def summary(model: str, results: Iterable[Result], reference: Mapping[int, str | None] | None = None) -> Summary:
    """reference: finish reasons of another run by data_index."""
    found = list(results)
    finishes = Counter(result.finish_reason for result in found if result.finish_reason)
    others = {name: count for name, count in finishes.items() if name not in ("stop", CALLS)}
    good = sum(result.finish_reason == CALLS and bool(result.tool_calls_valid) for result in found)
    ours = {result.data_index: result.finish_reason for result in found if result.status == "success"}
    same = _trigger(ours, reference or {})
    return Summary(
        model=model,
        success_count=sum(result.status == "success" for result in found),
        failure_count=sum(result.status != "success" for result in found),
        finish_stop=finishes["stop"],
        finish_tool_calls=finishes[CALLS],
        finish_others=sum(others.values()),
        finish_others_detail=others,
        schema_validation_error_count=finishes[CALLS] - good,
        successful_tool_call_count=good,
        schema_accuracy=SchemaAccuracy(finishes[CALLS], good).accuracy,
        reference_requests=len(ours.keys() & (reference or {}).keys()),
        tool_call_precision=same.precision,
        tool_call_recall=same.recall,
        tool_call_f1=same.f1,
        counts={"TP": same.tp, "FP": same.fp, "FN": same.fn, "TN": same.tn} if reference else {},
    )


def _trigger(ours: Mapping[int, str | None], reference: Mapping[int, str | None]) -> Trigger:
    return trigger({str(index): finish for index, finish in ours.items()}, {str(index): finish for index, finish in reference.items()})


class Journal:
    """The file of results; grows by a line with each. Use as a context manager.

    Raises Failure: qa.results_exist (path) for a new run over an old file, qa.results_differ (path, what) when a run that is to go on was
    another one, qa.unwritable (path, error).
    """

    def __init__(self, path: Path, about: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self.done: dict[int, Result] = {}
        self._writing = threading.Lock()
        beside = path.with_name(path.name + ".run.json")
        try:
            if path.exists() and not resume:
                raise Failure("qa.results_exist", path=path)
            if path.exists():
                _require_same(path, beside, about)
                self.done = _read(path)
                _drop_half_line(path)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                beside.write_text(json.dumps(dict(about), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            self._file: IO[str] = path.open("a", encoding="utf-8")
        except OSError as error:
            raise Failure("qa.unwritable", path=path, error=error.strerror or error) from error

    def add(self, result: Result) -> None:
        """Is on the disk when this returns. May be called from several threads at once."""
        line = json.dumps(asdict(result), ensure_ascii=False) + "\n"
        try:
            with self._writing:
                self._file.write(line)
                self._file.flush()
                os.fsync(self._file.fileno())
                self.done[result.data_index] = result
        except OSError as error:
            raise Failure("qa.unwritable", path=self.path, error=error.strerror or error) from error

    @property
    def finished(self) -> set[int]:
        """Requests that need not be sent again: what failed is."""
        return {index for index, result in self.done.items() if result.status == "success"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._file.close()


def read_reference(path: Path) -> dict[int, str | None]:
    """Finish reasons by data_index of a results file: ours, or Moonshot's. Raises Failure: qa.unreadable, qa.no_reference (path)."""
    try:
        found = _read(path)
    except OSError as error:
        raise Failure("qa.unreadable", path=path, error=error.strerror or error) from error
    if not found:
        raise Failure("qa.no_reference", path=path)
    return {index: result.finish_reason for index, result in found.items() if result.status == "success"}


def _read(path: Path) -> dict[int, Result]:
    """The last result of each request. Lines that are none are passed over: the last one may be half."""
    found: dict[int, Result] = {}
    names = set(Result.__dataclass_fields__)
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and isinstance(value.get("data_index"), int) and value.get("status") in ("success", "failed"):
                known = {name: each for name, each in value.items() if name in names}
                found[value["data_index"]] = Result(**known)
    return found


def _drop_half_line(path: Path) -> None:
    """What a crash left without its line end is cut off, so that the next line does not become part of it."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            file.seek(end - 1)
            if file.read(1) == b"\n":
                break
            end -= 1
        if end < size:
            file.truncate(end)


def _require_same(path: Path, beside: Path, about: Mapping[str, Any]) -> None:
    try:
        was = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Failure("qa.results_differ", path=path, what=beside.name) from None
    differ = [name for name, value in about.items() if not isinstance(was, dict) or was.get(name) != value]
    if differ:
        raise Failure("qa.results_differ", path=path, what=", ".join(differ))
