"""`check`: the self-test of a running server, check by check as it goes."""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from unicodedata import east_asian_width

from kimi_demo.checks.result import CheckResult
from kimi_demo.dialect.failure import Failure
from kimi_demo.flags import add_flags, settings_from
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import Texts, texts

DEFAULT_URL = "http://127.0.0.1:8000/v1"
_SETTINGS = ("base_url", "api_key", "model", "endpoint_kind", "connect_timeout_s", "language")
_LONGEST_S = 86_400
_SIGNS = {"passed": "ok  ", "failed": "FAIL", "skipped": "-   "}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check`. Its handler returns 0 (nothing failed), 1 (a check failed), 2 (bad input), 130 (interrupted)."""
    line = texts().say("cli.check")
    parser = subparsers.add_parser("check", help=line, description=line, usage="%(prog)s [URL] [flags]", allow_abbrev=False)
    parser.add_argument("url", nargs="?", metavar="URL", help=f"base URL of the server (default: --base-url, else {DEFAULT_URL})")
    parser.add_argument("--timeout-s", type=float, default=300.0, metavar="X", help="seconds that one check may take (default: 300)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON, at the end")
    add_flags(parser, _SETTINGS)
    parser.set_defaults(handler=_main)


def _main(given: argparse.Namespace) -> int:
    settings = settings_from(given)
    words = texts(settings.language)
    url = given.url or settings.base_url or DEFAULT_URL
    if not 0 < given.timeout_s <= _LONGEST_S:
        bad = Failure("plan.number", flag="--timeout-s", value=given.timeout_s)
        if given.timeout_s > _LONGEST_S:
            bad = Failure("parameters.at_most", field="--timeout-s", value=f"{given.timeout_s:g}", limit=_LONGEST_S)
        print(words.sentence(bad), file=sys.stderr)
        return 2
    results = asyncio.run(_run(url, settings, given.timeout_s, None if given.json else words))
    if given.json:
        told = [asdict(result) | {"message": said(result, words)} for result in results]
        print(json.dumps({"url": url, "passed": not _failed(results), "checks": told}, ensure_ascii=False, indent=2))
    elif _failed(results):
        print(words.say("check.failed_of", count=len(_failed(results)), all=len(results)))
    if any(result.code.startswith(("endpoint.url", "endpoint.key")) for result in results):
        return 2
    return 1 if _failed(results) else 0


async def _run(url: str, settings: Settings, limit_s: float, words: Texts | None) -> list[CheckResult]:
    from kimi_demo.checks.server import Address, self_test

    key = settings.api_key.get_secret_value() if settings.api_key else None
    address = Address(url, key, settings.model, settings.endpoint_kind, settings.connect_timeout_s)
    found = []
    async for result in self_test(address, limit_s):
        found.append(result)
        if words is not None:
            took = "" if result.state == "skipped" and not result.code else f"{result.seconds:.2f} s"
            print(_SIGNS[result.state], padded(words.say(f"check.{result.name}"), 42), f"{took:>9}", said(result, words), flush=True)
    return found


def padded(text: str, width: int) -> str:
    """`text` with spaces up to `width` columns of a terminal, in which Chinese characters take two."""
    return text + " " * max(0, width - sum(2 if east_asian_width(character) in "WF" else 1 for character in text))


def said(result: CheckResult, words: Texts) -> str:
    """What a result says beside its name: the failure with what to do, or what was seen."""
    if result.code:
        return words.sentence(Failure(result.code, **result.params))
    if result.state == "skipped":
        return words.say("check.skipped")
    return ", ".join(words.say(f"check.fact.{name}", value=value) for name, value in result.facts.items())


def _failed(results: list[CheckResult]) -> list[CheckResult]:
    return [result for result in results if result.state == "failed"]
