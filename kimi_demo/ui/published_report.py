"""A QA run as strangers read it: the report's own page, without the places where it was made."""

from typing import Any
from urllib.parse import urlsplit

from kimi_demo.model_name import last_part, shown_name
from kimi_demo.qa.attempt import FailureSeen
from kimi_demo.qa.comparing import compare
from kimi_demo.qa.repeat import SOMEWHERE
from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.report_html import as_html
from kimi_demo.settings import Settings
from kimi_demo.ui.hosts import is_loopback
from kimi_demo.ui.static_page import BAR
from kimi_demo.ui.texts import Texts

_TOLD = frozenset(
    f"--{name}"
    for name in (
        *("model", "tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "max-model-len", "gpu-memory-utilization"),
        *("dtype", "quantization", "kv-cache-dtype", "max-num-seqs", "max-num-batched-tokens", "seed", "block-size"),
        *("tool-call-parser", "reasoning-parser", "distributed-executor-backend", "mm-encoder-tp-mode"),
    )
)
"""Flags whose values are told; of all others only the names: a value can be a key, a host or a path."""

_UNTOLD = ("--host", "--port", "--api-key")

# Nothing runs and nothing is fetched; the report's bars have their widths in style attributes.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_HEAD = (
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><meta name="referrer" content="no-referrer">'
    '<meta name="robots" content="noindex, nofollow">'
)
_ROBOTS = '<meta name="robots" content="noindex">'


def report_page(title: str, report: Report, first: Report | None, settings: Settings, texts: Texts) -> bytes:
    """first: what the run is held against, if anything. The page in UTF-8."""
    shown = for_strangers(report, settings).model_copy(update={"title": title})
    comparison = compare(for_strangers(first, settings), shown) if first is not None else None
    html = as_html(shown, texts, comparison)
    return html.replace(_ROBOTS, _HEAD, 1).replace("<body>", f"<body>{BAR}", 1).encode("utf-8", "replace")


def for_strangers(report: Report, settings: Settings) -> Report:
    """The same report with a display name for the model, flags without places, and failures that keep their details to themselves."""
    server = report.server
    hidden = _hidden(report, settings)
    cases = [_case(case) for case in report.cases]
    written = report.model_copy(update={"cases": tuple(cases)}).model_dump(mode="json")
    written["server"] |= {"root": None, "address": SOMEWHERE, "flags": flags_told(server.flags)}
    return Report.model_validate(_replaced(written, hidden))


def flags_told(flags: tuple[str, ...]) -> list[str]:
    """A command line without its program, places and keys."""
    found: list[str] = []
    name = ""
    for each in flags:
        if each.startswith("--"):
            name, is_one, value = each.partition("=")
            if name in _UNTOLD:
                continue
            found.append(f"{name}={last_part(value)}" if is_one and name in _TOLD else name)
        elif name in _TOLD:
            found.append(last_part(each))
    return found


def _case(case: CaseReport) -> CaseReport:
    attempts = [
        seen.model_copy(update={"failure": FailureSeen(code="publish.run_failed")}) if seen.failure is not None else seen
        for seen in case.attempts
    ]
    return case.model_copy(update={"attempts": tuple(attempts)})


def _hidden(report: Report, settings: Settings) -> dict[str, str]:
    """Text → what stands for it, the longest first."""
    server = report.server
    found = {name: shown_name(name, settings.model_title) for name in (server.model, server.root) if name}
    parts = urlsplit(server.address)
    if parts.hostname:
        found |= {server.address.rstrip("/"): SOMEWHERE, parts.netloc: "SERVER", f"{parts.hostname}:{parts.port}": "SERVER"}
        if not is_loopback(parts.hostname):
            found[parts.hostname] = "SERVER"
    return dict(sorted(found.items(), key=lambda pair: len(pair[0]), reverse=True))


def _replaced(value: Any, hidden: dict[str, str]) -> Any:
    """In every text. A name that is no place (no slash, no dot) is replaced only where it stands alone: it can be part of a word."""
    if isinstance(value, dict):
        return {key: _replaced(each, hidden) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, hidden) for each in value]
    if not isinstance(value, str):
        return value
    for name, shown in hidden.items():
        if value == name:
            return shown
        if any(mark in name for mark in "/\\.:"):
            value = value.replace(name, shown)
    return value
