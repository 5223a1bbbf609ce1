"""What the buttons of the QA tab do. Each asks first whether it is the operator who pressed it."""

from functools import partial
from typing import Literal

from fastapi import FastAPI
from pydantic import Field

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import PRESETS
from kimi_demo.qa.case import Overrides
from kimi_demo.ui.acts import Given
from kimi_demo.ui.operators import add_operator_act
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.qa_page import MOST_AT_ONCE, MOST_REPEATS


class Form(Given):
    """The form's fields as they are typed; "" leaves a thing to the suite. suite: a key of the catalogue.
    server: a base URL that the operator keeps; "" is what answers the chat."""

    suite: str
    repeats: str = ""
    at_once: str = ""
    mode: Literal["", "thinking", "instant"] = ""
    preset: str = ""
    server: str = ""


class OfRun(Given):
    run: str


class Judgement(Given):
    run: str
    case: str
    good: bool
    note: str = Field("", max_length=2_000)


def add_qa_acts(app: FastAPI, services: Services) -> None:
    runs, texts = services.qa, services.texts

    act = partial(add_operator_act, app, services)

    async def start(given: Form) -> dict[str, str]:
        if not given.suite:
            raise Failure("qa_page.no_suite")
        if given.server and given.server not in services.control.addresses():
            raise Failure("pair.no_server", address=given.server[:200])
        overrides = Overrides(given.mode or None, _preset(given.preset), number_in(given.repeats, "repeats", MOST_REPEATS, texts))
        card = await runs.start(given.suite, overrides, number_in(given.at_once, "at_once", MOST_AT_ONCE, texts), given.server)
        return {"run": card.id}

    async def stop(given: Given) -> None:
        await runs.stop()

    async def again(given: OfRun) -> None:
        await runs.again(given.run)

    async def delete(given: OfRun) -> None:
        await runs.delete(given.run)
        await services.published.withdraw_all(None, "qa", given.run)

    async def baseline(given: OfRun) -> None:
        await runs.set_baseline(given.run)

    async def drop(given: OfRun) -> None:
        await runs.drop_baseline(given.run)

    async def judge(given: Judgement) -> None:
        await runs.judge(given.run, given.case, good=given.good, note=given.note.strip())

    act("qa_start", Form, start)
    act("qa_stop", Given, stop)
    act("qa_again", OfRun, again)
    act("qa_delete", OfRun, delete)
    act("qa_baseline", OfRun, baseline)
    act("qa_baseline_drop", OfRun, drop)
    act("qa_judge", Judgement, judge)


def number_in(typed: str, name: str, most: int, texts: Texts) -> int | None:
    """None for an empty field. Raises Failure("qa_page.number", name=, label=, most=)."""
    text = typed.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 8 and 1 <= int(text) <= most):
        raise Failure("qa_page.number", name=name, label=texts.say(f"qa_page.field.{name}"), most=f"{most:,}")
    return int(text)


def _preset(key: str) -> str | None:
    if key and key not in PRESETS:
        raise Failure("parameters.preset", name=key[:100], known=", ".join(PRESETS))
    return key or None
