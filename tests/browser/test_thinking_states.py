"""The thinking panel in a browser, state by state, against the scripted server: cut off, going on, long, lost, leaking."""

import asyncio
import re
import time
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Locator, expect

from tests import scripted_server
from tests.browser.page import DemoPage
from tests.demo import running
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def restored(scripted: Scripted) -> Iterator[None]:
    """A test that chose another scenario for every request leaves the usual one."""
    yield
    scripted.scenario("reasoning")


async def asked(page: DemoPage, question: str) -> Locator:
    await page.ask("chat", question)
    run = page.run("chat")
    await expect(run.locator(".bubble")).to_have_text(question)
    return run


async def ended(run: Locator) -> None:
    await expect(run).to_have_attribute("data-whole", "1")


async def test_give_it_more_asks_again_with_the_number_on_the_button(page: DemoPage, scripted: Scripted) -> None:
    await page.at("#chat-max-tokens input").fill("200")
    run = await asked(page, "[[cut_in_thought]] why")
    await expect(run.locator(".notice")).to_contain_text("All 6 tokens went into thinking; there is no answer.")
    await expect(run.locator("details.thought")).to_have_attribute("open", "")  # there is nothing else to see
    scripted.scenario("reasoning")
    await run.get_by_role("button", name="Give it 1,024 tokens").click()
    await expect(page.run("chat").locator(".version")).to_have_text("2/2")
    assert [chat.body["max_tokens"] for chat in scripted.chats[-2:]] == [200, 1024]
    assert scripted.chats[-1].body["messages"] == scripted.chats[-2].body["messages"]


async def test_keep_the_thinking_brief_says_so_to_the_model(page: DemoPage, scripted: Scripted) -> None:
    run = await asked(page, "[[cut_in_thought]] why")
    await run.get_by_role("button", name="Keep the thinking brief").click()
    await expect(page.run("chat").locator(".bubble")).to_have_text("[[cut_in_thought]] why Keep your reasoning brief.")
    await expect(page.run("chat").locator(".version")).to_have_text("2/2")


async def test_continue_goes_on_in_the_answer_through_a_raw_prompt(page: DemoPage, scripted: Scripted) -> None:
    scripted.scenario("cut_in_answer")
    run = await asked(page, "go on")
    await expect(run.locator(".notice")).to_contain_text("The answer was cut off")
    await expect(run.locator(".answer strong")).to_have_text("language model")  # cut in its mark, and shown as meant
    thought = scripted.chats[-1]
    scripted.scenario("answer_only", answer=" AND ON", counts_reasoning=False)
    await run.get_by_role("button", name="Continue").click()
    run = page.run("chat")
    await expect(run.locator(".version")).to_have_text("2/2")
    await expect(run.locator(".answer")).to_have_text(re.compile(r"A \W*language model\W* AND ON"))
    await ended(run)
    sent = scripted.chats[-1]
    assert sent.path == "/v1/completions" and thought.path == "/v1/chat/completions"
    assert re.search(
        r"<\|im_user\|>user<\|im_middle\|>go on<\|im_end\|>.*<think>The user wants.*</think>A \*\*language model", sent.body["prompt"], re.S
    )
    await run.locator("details.thought summary").click()
    await expect(run.locator(".thought-text")).to_contain_text("The user wants a short answer.")
    await expect(run.locator(".thought-text")).not_to_contain_text("AND ON")
    await asked(page, "[[reasoning]] and then?")  # what was continued is what the model is told it said
    await page.idle("chat")
    assert scripted.chats[-1].body["messages"][1]["content"].endswith(" AND ON")


async def test_a_stopped_thought_can_go_on(page: DemoPage, scripted: Scripted) -> None:
    run = await asked(page, "[[long_thought tokens=400 rate=40]]")
    await expect(run.locator(".thought-text")).to_have_text(re.compile(r"(w\d+\s+){5}"))
    await page.at("#chat-stop").click()
    await expect(run.locator("summary .label")).to_have_text("Thought, not finished")
    await run.get_by_role("button", name="Continue thinking").click()
    await expect(page.run("chat").locator(".version")).to_have_text("2/2")
    await expect(page.run("chat").locator(".thought-text")).to_have_text(re.compile(r"w0 w1 w2.*w0 w1 w2", re.S))
    await page.at("#chat-stop").click()
    assert re.search(r"<think> w0 w1[ w\d]+$", scripted.chats[-1].body["prompt"])


async def test_a_server_that_lacks_things_and_an_app_that_goes_away(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with scripted_server.running(missing={"/v1/completions"}) as lacking:
        with running(tmp_path_factory.mktemp("lacking"), "--base-url", lacking.base_url) as demo:
            page = await DemoPage.open(browser, demo.address)
            run = await asked(page, "[[thought_in_content]] why")  # no reasoning parser: the endpoint splits, and says so
            await expect(run.locator(".notes")).to_contain_text("--reasoning-parser kimi_k2")
            await expect(run.locator(".answer")).not_to_contain_text("</think>")
            run = await asked(page, "[[cut_in_answer]] go on")
            await expect(run.locator(".notice").first).to_be_visible()
            await expect(run.locator(".offers")).to_have_count(0)  # no raw completions: nothing is offered that cannot be done
            run = await asked(page, "[[long_thought tokens=4000 rate=20]]")
            await expect(run.locator("summary .clock")).to_have_text(re.compile(r"^[1-9]"))
            demo.program.kill()
            await expect(page.at("#chat .live")).to_have_class(re.compile("away"))
            stopped = await run.locator("summary .clock").inner_text()
            await asyncio.to_thread(time.sleep, 0.5)  # what is looked for is that nothing happens
            assert await run.locator("summary .clock").inner_text() == stopped
            await page.close()


async def test_stop_in_a_long_prefill(page: DemoPage, scripted: Scripted) -> None:
    run = await asked(page, "[[silent seconds=60 headers=true]]")
    await expect(run.locator(".phase")).to_contain_text("Reading the prompt")
    await scripted.arrived(len(scripted.chats))
    pressed = time.monotonic()
    await page.at("#chat-stop").click()
    await expect(run.locator(".notice")).to_contain_text("Stopped.")
    await expect(run.locator(".clock[data-elapsed]")).to_have_count(0)
    aborted = scripted.chats[-1].aborted_at
    assert aborted is not None and aborted - pressed < 1


@pytest.mark.parametrize(("scenario", "words"), [("dies after=4", "broke off"), ("error_event after=4", "EngineCore encountered an issue")])
async def test_a_server_that_fails_in_mid_thought(page: DemoPage, scenario: str, words: str) -> None:
    run = await asked(page, f"[[{scenario}]] why")
    await expect(run.locator(".notice[data-kind=error]")).to_contain_text(words)
    await expect(run.locator("details.thought")).to_have_attribute("open", "")
    await expect(run.locator(".thought-text")).to_contain_text("The user")
    await expect(run.locator(".clock[data-elapsed]")).to_have_count(0)


async def test_chunks_without_choices_and_no_usage(page: DemoPage) -> None:
    run = await asked(page, "[[no_choices]] why")
    await ended(run)
    await expect(run.locator("details.thought summary")).to_have_text(re.compile(r"^Thought\d+\.\d s\d+ tokens$"))
    run = await asked(page, "[[no_usage]] why")
    await ended(run)
    await expect(run.locator("details.thought summary")).to_have_text(re.compile(r"^Thought\d+\.\d sabout \d+ tokens$"))


async def test_leaked_tool_marks_are_named(page: DemoPage) -> None:
    run = await asked(page, "[[leaked_markup]] why")
    await expect(run.locator(".notes")).to_contain_text("--enable-auto-tool-choice --tool-call-parser kimi_k2")


async def test_spaces_chinese_emoji_and_right_to_left(page: DemoPage, scripted: Scripted) -> None:
    text = "One\n    indented\n\ttab\n\n\u0645\u0631\u062d\u0628\u0627 语言模型 👩‍🚀"
    scripted.scenario(
        "reasoning",
        thought=text,
        answer="first\n  second\n\n" + "语言👩‍🚀" + "\n\n\u0645\u0631\u062d\u0628\u0627 \u0643\u064a\u0641",
        cut_bytes=3,
    )
    run = await asked(page, "spaces")
    await ended(run)
    answer = run.locator(".answer")
    assert "first\n  second" in await answer.inner_text()
    await expect(answer).to_contain_text("语言👩‍🚀")
    await run.locator("details.thought summary").click()
    await expect(run.locator(".thought-text")).to_contain_text("语言模型 👩‍🚀")
    assert (
        "    indented" in await run.locator(".thought-text").inner_text()
        or "indented\n\ttab" in await run.locator(".thought-text").inner_text()
    )


async def test_right_to_left_text_goes_its_way_block_by_block(page: DemoPage, scripted: Scripted) -> None:
    arabic, hebrew = "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643", "\u05e9\u05dc\u05d5\u05dd"
    answer = f"{arabic}.\n\nEnglish.\n\n- {hebrew}\n\n> {hebrew}\n\n```python\nprint('x')\n```"
    scripted.scenario("reasoning", thought=f"{arabic}\n\nEnglish", answer=answer)
    run = await asked(page, arabic)
    await ended(run)
    await run.locator("details.thought summary").click()
    await expect(run.locator(".thought-text .prose")).to_be_visible()
    sides = """(run) => Object.fromEntries(
        [...run.querySelectorAll(".bubble, .thought-text p, .answer p, .answer li, .answer code")].map((each) => {
            const range = document.createRange();
            range.selectNodeContents(each);
            const text = range.getBoundingClientRect();
            const box = each.closest(".code, li, .bubble, p").getBoundingClientRect();
            const place = each.closest(".thought-text, .answer, .question").classList[0];
            const name = `${place} ${each.tagName} ${each.textContent.trim().slice(0, 5)}`;
            return [name, text.left - box.left > box.right - text.right ? "right" : "left"];
        }))"""
    found = await run.evaluate(sides)
    short = arabic[:5]
    assert found[f"thought-text P {short}"] == "right" and found["thought-text P Engli"] == "left"
    assert found[f"answer P {short}"] == "right" and found["answer P Engli"] == "left"
    assert found[f"answer LI {hebrew}"] == "right" and found[f"answer P {hebrew}"] == "right" and found["answer CODE print"] == "left"
    for mixed in (page.at("#chat-input textarea"), run.locator(".bubble")):  # line by line, also where one block holds several
        await expect(mixed).to_have_css("unicode-bidi", "plaintext")


async def test_a_thought_of_50_000_tokens(page: DemoPage, scripted: Scripted) -> None:
    """It arrives, is there whole when opened, and a reload does not bring it. (Its cost: tests/browser/test_thinking_cost.py,
    tests/ui/view/test_thinking.py.)"""
    scripted.scenario("long_thought", tokens=50_000, rate=5_000)
    await page.ask("chat", "long")
    run = page.run("chat")
    await expect(run.locator(".thought-text")).to_contain_text("w20000", timeout=60_000)
    await expect(run).to_have_attribute("data-whole", "1", timeout=60_000)
    await page.load()
    await ended(page.run("chat"))
    assert await page.page.evaluate("document.querySelector('#chat .live').innerHTML.length") < 10_000
    await run.locator("details.thought summary").click()
    await expect(run.locator(".thought-text")).to_contain_text("w49999")
    await run.get_by_role("button", name=re.compile(r"Render all [\d,]+ characters")).click()
    await expect(run.locator(".thought-text .prose")).to_contain_text("w49999", timeout=30_000)
