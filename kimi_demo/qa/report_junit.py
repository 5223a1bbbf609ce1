"""A report as JUnit XML, as CI systems read it. Pure."""

import re
from xml.etree import ElementTree as xml

from kimi_demo.qa.report import CaseReport, Report
from kimi_demo.qa.verdict import CheckResult
from kimi_demo.qa.wording import Speaks, got_of, name_of, title_of

# XML 1.0 has no place for these, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: Report, words: Speaks) -> str:
    """Warnings pass, and stand in the output; what was left out, not run or not judged is skipped."""
    counts = report.counts
    skipped = sum(counts[state] for state in ("skip", "open", "waiting", "running"))
    shared = {"tests": str(len(report.cases)), "failures": str(counts["fail"]), "errors": "0", "time": f"{report.seconds:.3f}"}
    root = xml.Element("testsuites", shared | {"name": "kimi_demo qa"})
    suite = xml.SubElement(root, "testsuite", shared | {"name": report.suite, "skipped": str(skipped)})
    if report.started_at:
        suite.set("timestamp", report.started_at)
    properties = xml.SubElement(suite, "properties")
    for name, value in _properties(report).items():
        xml.SubElement(properties, "property", {"name": name, "value": _clean(value)})
    for case in report.cases:
        _case(suite, report, case, words)
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _case(suite: xml.Element, report: Report, case: CaseReport, words: Speaks) -> None:
    named = {"classname": f"qa.{report.suite}", "name": f"{case.id}: {_clean(title_of(case, words))}", "time": f"{case.seconds:.3f}"}
    element = xml.SubElement(suite, "testcase", named)
    lines = [_line(case, check, words) for check in case.wrong]
    if case.state == "fail":
        first = next(check for check in case.checks if check.outcome == "fail")
        failure = xml.SubElement(element, "failure", {"type": first.check, "message": _clean(name_of(first, words))})
        failure.text = _clean("\n\n".join([case.question, *lines]))
    elif case.state == "warn":
        xml.SubElement(element, "system-out").text = _clean("\n\n".join(lines))
    elif case.state != "pass":
        xml.SubElement(element, "skipped", {"message": words.say(f"qa.state.{case.state}")})


def _line(case: CaseReport, check: CheckResult, words: Speaks) -> str:
    expected = f"\n  {words.say('qa.expected')}: {check.expected}" if check.expected else ""
    return f"{name_of(check, words)}{expected}\n  {words.say('qa.got')}: {got_of(case, check, words)}"


def _properties(report: Report) -> dict[str, str]:
    server = report.server
    found = {"model": server.model, "server": server.address, "kind": server.kind, "server_version": server.version or ""}
    found |= {"kimi_demo_version": report.app_version, "flags": " ".join(server.flags), **report.overrides}
    return {name: value for name, value in found.items() if value}


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
