"""What the head of every report says: who was asked, with what, when, and how it went. Pure."""

from dataclasses import dataclass

from kimi_demo.qa.comparing import Comparison
from kimi_demo.qa.metrics import of_report
from kimi_demo.qa.repeat import SOMEWHERE
from kimi_demo.qa.report import Report
from kimi_demo.qa.wording import Speaks

STATES = ("fail", "warn", "open", "pass", "skip", "waiting", "running")


@dataclass(frozen=True)
class Fact:
    label: str
    value: str


def facts(report: Report, words: Speaks) -> list[Fact]:
    """In words; what is not known is left out."""
    server, say = report.server, words.say
    repeats = sorted({case.repeats for case in report.cases})
    found = [
        ("model", server.model),
        ("address", "" if server.address == SOMEWHERE else server.address),
        ("server", " ".join(part for part in (server.kind, server.version or "") if part)),
        ("context", f"{server.max_model_len:,}" if server.max_model_len else ""),
        ("flags", " ".join(server.flags)),
        ("app", f"kimi_demo {report.app_version}"),
        ("date", report.started_at.replace("T", " ").replace("+00:00", " UTC")),
        ("seconds", f"{report.seconds:.1f}"),
        ("requests", str(report.requests)),
        ("at_once", str(report.at_once)),
        ("repeats", f"{repeats[0]}–{repeats[-1]}" if len(repeats) > 1 else str(repeats[0]) if repeats else ""),
        ("overrides", ", ".join(f"{name}: {value}" for name, value in report.overrides.items())),
    ]
    found += [(name, value) for name, value in _metrics(report)]
    return [Fact(say(f"qa.fact.{name}"), value) for name, value in found if value]


def counted(report: Report, words: Speaks) -> str:
    """ "12 passed, 1 failed" """
    counts = report.counts
    return ", ".join(f"{counts[state]} {words.say(f'qa.state.{state}')}" for state in STATES if counts[state])


def compared(comparison: Comparison, words: Speaks) -> list[Fact]:
    first, trigger = comparison.first, comparison.trigger
    against = f"{first.server.model} · {first.started_at.replace('T', ' ').replace('+00:00', ' UTC')}"
    if first.overrides:
        against += " · " + ", ".join(f"{name}: {value}" for name, value in first.overrides.items())
    found = [Fact(words.say("qa.fact.against"), against), Fact(words.say("qa.fact.slower"), f"{comparison.slower:+.1f} s")]
    if trigger.f1 is not None:
        told = f"{trigger.f1:.1%} (TP {trigger.tp}, FP {trigger.fp}, FN {trigger.fn}, TN {trigger.tn})"
        found.append(Fact(words.say("qa.fact.trigger_f1"), told))
    return found


def _metrics(report: Report) -> list[tuple[str, str]]:
    schema = of_report(report)
    return [] if schema.accuracy is None else [("schema_accuracy", f"{schema.accuracy:.1%} ({schema.successful}/{schema.calls})")]
