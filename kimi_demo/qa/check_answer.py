"""Checks of what an answer says. Pure."""

import json
import re
from decimal import Decimal

from jsonschema.exceptions import ValidationError

from kimi_demo.qa.attempt import Attempt
from kimi_demo.qa.case import Planned
from kimi_demo.qa.comparisons import compares_rightly, numbers
from kimi_demo.qa.verdict import Verdict, judged
from kimi_demo.tools.parameters_schema import validator_of

MOST_SEARCHED = 20_000
"""Characters that a regular expression is held against: one that is badly written takes time that grows with them."""


def answer(planned: Planned, seen: Attempt) -> list[Verdict]:
    """One verdict for each thing that the case says of the answer."""
    wanted, found, text = planned.case.checks.answer, list[Verdict](), seen.answer
    if wanted is None:
        return found
    folded = text.casefold()
    if wanted.contains:
        missing = [part for part in wanted.contains if part.casefold() not in folded]
        found.append(judged("contains", not missing, missing or wanted.contains, text))
    if wanted.any_of:
        found.append(judged("any_of", any(part.casefold() in folded for part in wanted.any_of), wanted.any_of, text))
    if wanted.excludes:
        there = [part for part in wanted.excludes if part.casefold() in folded]
        found.append(judged("excludes", not there, there or wanted.excludes, text))
    if wanted.matches is not None:
        found.append(judged("matches", re.search(wanted.matches, text[:MOST_SEARCHED]) is not None, wanted.matches, text))
    if wanted.equals is not None:
        found.append(judged("equals", text.strip() == wanted.equals.strip(), wanted.equals, text))
    if wanted.larger is not None:
        larger, smaller = map(Decimal, wanted.larger)
        said = compares_rightly(text, larger, smaller)
        right = numbers(text) == [larger] if said is None else said
        found.append(judged("larger", right, f"{larger} > {smaller}", text))
    if wanted.json_schema is not None:
        wrong = _wrong_json(text, wanted.json_schema)
        found.append(judged("json", not wrong, "", f"{wrong}: {text}" if wrong else text))
    if wanted.empty is not None:
        found.append(judged("empty" if wanted.empty else "not_empty", (not text.strip()) == wanted.empty, "", text))
    return found


def _wrong_json(text: str, schema: dict[str, object]) -> str:
    """What is wrong with an answer that should be JSON of a schema; "" when nothing is."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return str(error)
    wrong: ValidationError | None = next(validator_of(schema).iter_errors(value), None)
    return "" if wrong is None else wrong.message[:200]


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
