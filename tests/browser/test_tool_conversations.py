"""Tool conversations as a person has them: calls that wait for leave, replay, comparisons, and what is said when something goes wrong."""

import asyncio
import re

import httpx
import pytest
from playwright.async_api import Browser, Locator, Route, expect

from tests.browser.page import DemoPage
from tests.demo import Demo
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEMO_FLAGS = ("--max-rounds", "3")


async def asked(page: DemoPage, text: str) -> Locator:
    """The run of the question, once it is shown; it may still go on."""
    await page.tab("Function calling")
    await page.ask("tools", text)
    await expect(page.run("tools").locator(".bubble")).to_have_text(text)
    return page.run("tools")


async def answered(page: DemoPage, text: str) -> Locator:
    run = await asked(page, text)
    await expect(run).to_have_attribute("data-whole", "1")
    return run


async def pressed(page: DemoPage, run: Locator, name: str) -> None:
    """Presses a button of the run, and waits until what it began has replaced or followed it and is over."""
    before = await page.at("#tools [data-run]").evaluate_all("runs => runs.map((run) => run.dataset.run).join()")
    await run.get_by_role("button", name=name, exact=True).first.click()
    await changed(page, before)


async def changed(page: DemoPage, before: str) -> None:
    shown = "[...document.querySelectorAll('#tools [data-run]')]"
    over = f"(before) => {shown}.map((run) => run.dataset.run).join() !== before && {shown}.every((run) => run.dataset.whole)"
    await page.page.wait_for_function(over, arg=before, timeout=30_000)


async def test_a_call_waits_for_leave_also_after_a_reload(page: DemoPage) -> None:
    await page.tab("Function calling")
    await page.at("#tools-approve input").check()
    await expect(page.at("#tools-approve input")).to_have_css("appearance", "auto")  # Gradio's style hides the tick of a box of ours
    run = await asked(page, "[[two_calls]] two sums")
    first, second = run.locator(".call").nth(0), run.locator(".call").nth(1)
    await expect(first).to_have_attribute("data-state", "asking")
    await expect(second).to_have_attribute("data-state", "waiting")
    await page.load()
    run = page.run("tools")
    first, second = run.locator(".call").nth(0), run.locator(".call").nth(1)
    await page.tab("Function calling")
    await expect(first.locator(".badge")).to_have_text("waiting for you")
    await expect(page.at("#tools-approve input")).to_be_checked()
    await first.get_by_role("button", name="Run it", exact=True).click()
    await expect(first.locator(".result pre")).to_have_text("3")
    await second.get_by_role("button", name="Do not run it").click()
    await expect(second.locator(".badge")).to_have_text("not approved")
    await expect(run.locator(".round").last.locator(".answer")).to_contain_text("The result: 3 Not carried out: the user did not approve")


async def test_what_is_typed_while_a_question_is_on_its_way_stays(page: DemoPage) -> None:
    await page.tab("Function calling")
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slowly(route: Route) -> None:
        asked.set()
        await answer.wait()
        await route.continue_()

    field = page.at("#tools-input textarea")
    await page.page.route("**/kimi/act/tools_ask", slowly)
    await page.ask("tools", "first")
    await asked.wait()
    await field.fill("second")
    answer.set()
    await expect(page.run("tools").locator(".bubble")).to_have_text("first")
    await page.idle("tools")
    await expect(field).to_have_value("second")
    await field.press("Enter")
    await expect(page.run("tools").locator(".bubble")).to_have_text("second")
    await expect(field).to_have_value("")


@pytest.mark.parametrize("size", [(1280, 720), (360, 740)])
async def test_the_field_and_all_switches_are_in_sight(size: tuple[int, int], attached: Demo, browser: Browser) -> None:
    width, height = size
    page = await DemoPage.open(browser, attached.address, viewport={"width": width, "height": height})
    await page.tab("Function calling")
    for name in ("tools-input", "tools-run", "tools-view", "tools-approve", "tools-clear"):
        box = await page.at(f"#{name}").bounding_box()
        assert box is not None and box["y"] + box["height"] <= height and 0 <= box["x"] <= box["x"] + box["width"] <= width, (name, box)
    await page.close()


async def test_stop_ends_the_waiting(page: DemoPage) -> None:
    await page.tab("Function calling")
    await page.at("#tools-approve input").check()
    run = await asked(page, "[[one_call]] never")
    await expect(run.locator(".call")).to_have_attribute("data-state", "asking")
    await page.at("#tools-stop").click()
    await expect(run.locator(".call")).to_have_attribute("data-state", "stopped")
    await expect(run.locator(".ask")).to_have_count(0)
    await expect(run.locator(".ending")).to_contain_text("Stopped.")


async def test_nobody_acts_on_anothers_conversation(page: DemoPage, attached: Demo) -> None:
    await page.tab("Function calling")
    await page.at("#tools-approve input").check()
    run = await asked(page, "[[one_call]] mine")
    await expect(run.locator(".call")).to_have_attribute("data-state", "asking")
    run_id = await run.get_attribute("data-run")
    place = {"run": run_id, "round": 0, "call": 0}
    async with httpx.AsyncClient(base_url=attached.address, timeout=30) as stranger:
        acts: dict[str, dict[str, object]] = {
            "tools_decide": {**place, "decision": "approved"},
            "tools_answer": {**place, "text": "42"},
            "tools_edit": {**place, "what": "result", "text": "42"},
            "tools_again": {"run": run_id},
            "tools_repeat": {"run": run_id, "times": 2},
            **{act: {"run": run_id} for act in ("tools_go_on", "tools_version", "tools_plain")},
        }
        for act, given in acts.items():
            answer = await stranger.post(f"/kimi/act/{act}", json=given)
            assert answer.status_code == 422 and "This run is not here." in answer.text, (act, answer.text)
    await expect(run.locator(".call")).to_have_attribute("data-state", "asking")
    await page.at("#tools-stop").click()
    await page.idle("tools")


async def test_a_tool_that_asks_gets_the_result_that_is_typed(page: DemoPage, scripted: Scripted) -> None:
    await page.tab("Function calling")
    tool = {"name": "weigh", "description": "Weighs.", "parameters": '{"type": "object"}', "answering": "ask", "text": ""}
    save = "(tool) => fetch('kimi/tools/own', {method: 'POST', body: JSON.stringify(tool)}).then((answer) => answer.ok)"
    assert await page.page.evaluate(save, tool)
    run = await asked(page, '[[one_call name=weigh arguments="{\\"a\\":1}"]] weigh it')
    form = run.locator("form.ask")
    await expect(form).to_contain_text("What does weigh return?")
    await form.locator("textarea").fill("  ")
    await form.get_by_role("button", name="Send the result").click()
    await expect(form.locator(".form-notice")).to_contain_text("A result is needed.")
    page.complaints.clear()  # the browser has noted that this was turned down
    await form.locator("textarea").fill("Both weigh\nthe same.")
    await form.locator("textarea").press("Escape")  # leaves the field, and does not stop the run
    await expect(run.locator(".call")).to_have_attribute("data-state", "asking")
    await form.locator("textarea").press("Control+Enter")
    await expect(run.locator(".call .result pre")).to_have_text("Both weigh\nthe same.")
    await expect(run.locator(".call-head")).to_contain_text("answered by you")
    await expect(run).to_have_attribute("data-whole", "1")
    assert scripted.chats[-1].body["messages"][-1]["content"] == "Both weigh\nthe same."


async def test_an_edited_result_makes_a_version_and_both_are_kept(page: DemoPage, scripted: Scripted) -> None:
    run = await answered(page, "[[one_call]] a sum")
    await expect(run.locator(".answer").last).to_contain_text("The result: 42")
    before = await run.get_attribute("data-run") or ""
    await run.get_by_text("Edit result").click()
    field = run.locator(".edit[open] textarea")
    await expect(field).to_have_value("42")
    await field.fill("41 </pre><b>exactly</b>")
    await run.get_by_role("button", name="Go on from here").last.click()
    await changed(page, before)
    run = page.run("tools")
    await expect(run.locator(".answer").last).to_contain_text("The result: 41 </pre>")
    await expect(run.locator(".call-head")).to_contain_text("result edited")
    await expect(run.locator(".version")).to_have_text("2/2")
    assert scripted.chats[-1].body["messages"][-1]["content"] == "41 </pre><b>exactly</b>"
    await pressed(page, run, "Previous version")
    await expect(page.run("tools").locator(".version")).to_have_text("1/2")
    await expect(page.run("tools").locator(".answer").last).to_contain_text("The result: 42")
    await page.load()
    await expect(page.run("tools").locator(".version")).to_have_text("1/2")


async def test_edited_arguments_are_carried_out(page: DemoPage) -> None:
    run = await answered(page, "[[bad_arguments]] a sum")
    await expect(run.locator(".badge")).to_have_text("invalid arguments")
    before = await run.get_attribute("data-run") or ""
    await run.get_by_text("Edit arguments").click()
    await expect(run.locator(".edit[open] textarea")).to_have_value('{"a": 17, b: 25')
    await run.locator(".edit[open] textarea").fill('{"a": 17, "b": 26}')
    await run.get_by_role("button", name="Go on from here").first.click()
    await changed(page, before)
    await expect(page.run("tools").locator(".call .result pre")).to_have_text("43")
    await expect(page.run("tools").locator(".call-head")).to_contain_text("arguments edited")


async def test_a_server_that_goes_away_between_rounds_is_asked_again_from_that_round(page: DemoPage, scripted: Scripted) -> None:
    scripted.scenario("gone_between")
    run = await answered(page, "a sum, please")
    await expect(run.locator(".ending")).to_contain_text("Try again from round 2")
    scripted.scenario("one_call")
    count = len(scripted.chats)
    await pressed(page, run, "Try again from round 2")
    run = page.run("tools")
    await expect(run.locator(".call .result pre")).to_have_text("42")
    await expect(run.locator(".answer").last).to_contain_text("The result: 42")
    assert len(scripted.chats) == count + 1  # the first round was not asked for again
    scripted.reset()


async def test_the_cap_on_rounds_is_said_and_one_can_go_on(page: DemoPage) -> None:
    run = await answered(page, "[[rounds rounds=5]] many steps")
    await expect(run.locator(".ending")).to_contain_text("still calling tools after 3 rounds")
    await pressed(page, run, "Go on with more rounds")
    run = page.run("tools")
    await expect(run.locator(".round")).to_have_count(6)
    await expect(run.locator(".answer").last).to_contain_text("The result: 1 2 3 4 5")
    await expect(run.locator(".totals")).to_contain_text("rounds: 6calls: 5")
    await expect(run.locator(".sent-back").last).to_contain_text("Sent back to the model: its reasoning")


async def test_compared_with_no_tools_it_stands_beside(page: DemoPage) -> None:
    await answered(page, "[[no_tool]] what is it")
    first = page.run("tools", 0)
    await expect(first.locator(".ending")).to_contain_text("without calling a tool")
    await answered(page, "[[one_call]] the next")
    await pressed(page, first, "Compare with no tools")
    beside = page.at("#tools [data-beside]")
    await expect(beside).to_contain_text("The same question without tools")
    await expect(beside.locator(".answer")).to_have_text("It is 42.")
    left, right = await first.bounding_box(), await beside.bounding_box()
    assert left is not None and right is not None and right["x"] > left["x"] + left["width"] - 1 and abs(left["y"] - right["y"]) < 2
    await expect(page.at("#tools [data-run]").nth(2).locator(".bubble")).to_have_text("[[one_call]] the next")
    await expect(beside).to_be_in_viewport()  # the page stays with the question that was acted on


async def test_a_question_is_repeated_and_tallied(page: DemoPage, scripted: Scripted) -> None:
    run = await answered(page, "[[one_call]] again")
    count = len(scripted.chats)
    before = await run.get_attribute("data-run") or ""
    await run.locator("summary", has_text="Repeat").click()
    await run.locator("input[name=times]").fill("3")
    await run.locator("input[name=times]").press("Enter")
    await changed(page, before)
    tally = page.run("tools").locator(".repeat")
    await expect(tally.locator(".verdict")).to_have_text("All 3 made the same calls with the same arguments.")
    await expect(tally.locator("tbody tr")).to_have_count(1)
    await expect(tally.locator("tbody tr")).to_contain_text("add(a=17, b=25)")
    assert len(scripted.chats) == count + 6


async def test_the_compact_view_is_one_line_a_call_and_is_remembered(page: DemoPage) -> None:
    run = await answered(page, "[[two_calls]] two")
    await expect(run.locator(".call .arguments").first).to_be_visible()
    await page.page.get_by_role("radio", name="Compact").click()
    await expect(run.locator(".call .arguments").first).to_be_hidden()
    await expect(run.locator(".call-brief").first).to_have_text("add(a=1, b=2) → 3")
    await page.load()
    await expect(page.run("tools").locator(".call-brief").first).to_be_visible()
    await page.page.get_by_role("radio", name="Detailed").click()
    await expect(page.run("tools").locator(".call .arguments").first).to_be_visible()


async def test_the_request_of_each_round_can_be_taken_along(page: DemoPage) -> None:
    run = await answered(page, "[[one_call]] curl")
    box = run.locator("details.request").last
    await box.locator("> summary").click()
    await expect(box.locator("pre").first).to_contain_text('"tool_call_id": "functions.add:0"')
    await expect(box).to_contain_text("curl -sS -N")


FAULTS = {
    "lost_call": "asked once more without streaming",
    "bad_arguments": "The arguments are not valid JSON",
    "cut_arguments": "cut off at",
    "empty_arguments": "a is missing",
    "nested_arguments": "a JSON object inside a JSON string",
    "missing_field": "b is missing",
    "extra_field": "c is not a parameter of this tool",
    "wrong_arguments": 'must be an integer (got "seventeen")',
    "nan_arguments": "NaN is not a JSON number",
    "vast_number": "1E+400 is greater than 25",
    "vast_arguments": "The arguments are too large",
    "duplicate_keys": 'The arguments name "a" twice',
    "special_tokens": "special tokens of Kimi's vocabulary",
    "unknown_tool": 'There is no tool named "launch"',
    "same_id": "two calls the same id",
    "foreign_ids": "not in Kimi's form",
    "swallowed_call": "neither an answer nor a tool call",
    "leaked_markup": "only one way to read it",
    "leaked_thought": "only one way to read it",
    "leaked_half": "left tool-call marks in the text",
    "no_auto_tool_choice": "--enable-auto-tool-choice",
    "endless_call": "the same call to add in 3 rounds",
    "text_after_call": "wrote more after its calls",
    "no_tool": "without calling a tool",
}


async def test_whatever_goes_wrong_is_said(page: DemoPage) -> None:
    for scenario, words in FAULTS.items():
        run = await answered(page, f"[[{scenario}]] {scenario}")
        told = " ".join((await run.inner_text()).split())
        assert words in told, (scenario, told)
        assert re.search(r"round 1", told, re.I), scenario
