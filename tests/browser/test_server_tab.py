"""The Server tab in a browser, on scripted servers: the page of the operator, and what everybody else sees of it."""

import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.page import ENGINE_MS, DemoPage
from tests.demo import Demo
from tests.programs import ROOT, running
from tests.scripted_server import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def server_tab(attached: Demo, browser: Browser) -> AsyncIterator[DemoPage]:
    """The operator's page with the tab open."""
    found = await DemoPage.open(browser, attached.operator)
    await found.tab("Server")
    await expect(found.at("#srv-head .srv-state")).to_have_text("ready", timeout=60_000)
    yield found
    assert not found.complaints
    await found.close()


async def view(page: DemoPage, name: str) -> None:
    await page.at(f'[data-srv-view="{name}"]').click()
    await expect(page.at(f'[data-srv-panel="{name}"]')).to_be_visible()


async def test_a_visitor_sees_one_sentence(page: DemoPage) -> None:
    await page.tab("Server")
    await expect(page.at("#server")).to_contain_text("?operator=")
    assert await page.at("#server button, #server form, #server input").count() == 0


async def test_what_the_server_is_and_can_do(server_tab: DemoPage) -> None:
    await expect(server_tab.at("#srv-head")).to_contain_text("Kimi-K2.5")
    await expect(server_tab.at(".srv-models")).to_contain_text("/models/moonshotai/Kimi-K2.5")
    await expect(server_tab.at("#srv-models")).to_contain_text("--served-model-name")
    await expect(server_tab.at('[data-capability="reasoning"][data-can="yes"]')).to_be_visible()
    await expect(server_tab.at(".srv-can")).to_contain_text("raw prompts")
    await server_tab.at("#srv-curl-box summary").click()
    await expect(server_tab.at("#srv-curl-box pre").first).to_contain_text("$KIMI_DEMO_API_KEY")


async def test_the_self_test_goes_on_check_by_check_and_can_be_stopped(server_tab: DemoPage, scripted: Scripted) -> None:
    scripted.scenario("silent", seconds=60)
    await server_tab.at('[data-act="server_check"]').click()
    await expect(server_tab.at('[data-check="thinking"][data-state="running"]')).to_be_visible()
    await expect(server_tab.at('[data-check="models"][data-state="passed"]')).to_be_visible()
    await server_tab.at('[data-act="server_check_stop"]').click()
    await expect(server_tab.at("#srv-check")).to_contain_text("Stopped before its end")
    scripted.scenario("reasoning")
    await server_tab.at('[data-act="server_check"]').click()
    await expect(server_tab.at(".srv-verdict")).to_be_visible(timeout=120_000)
    rows = server_tab.at(".srv-checks li")
    await expect(rows).to_have_count(7)
    assert all(re.search(r"\d\.\d\d s", text) for text in await rows.all_inner_texts())


async def test_a_launch_is_shown_as_it_is_typed_and_a_wrong_field_says_so(server_tab: DemoPage) -> None:
    await view(server_tab, "launch")
    await expect(server_tab.at("#srv-line-shell")).to_contain_text("--max-model-len 8192")
    await server_tab.at('#srv-form [name="max_model_len"]').fill("lots")
    await expect(server_tab.at('[data-field="max_model_len"] .srv-wrong')).to_have_text("Context: must be a whole number.")
    await server_tab.at("[data-srv-start]").click()  # it is refused, and what answers goes on
    await expect(server_tab.at("#server-notice")).to_contain_text("must be a whole number")
    await server_tab.at('#srv-form [name="max_model_len"]').fill("131072")
    await server_tab.at('#srv-form [name="served_model_name"]').fill("kimi")
    await expect(server_tab.at("#srv-line-docker")).to_contain_text("--served-model-name kimi")
    await expect(server_tab.at('[data-field="max_model_len"] .srv-wrong')).to_be_hidden()
    await server_tab.at("#srv-profile-name").fill("Long <b>context</b>")
    await server_tab.at("[data-srv-save]").click()
    profile = server_tab.at("[data-srv-load]")
    await expect(profile).to_have_text("Long <b>context</b>")
    await server_tab.at('#srv-form [name="max_model_len"]').fill("64")
    await profile.click()
    await expect(server_tab.at('#srv-form [name="max_model_len"]')).to_have_value("131072")
    await server_tab.at('[data-act="server_profile_delete"]').click()
    await expect(profile).to_have_count(0)


async def test_lines_for_several_machines_and_a_port_that_is_taken(server_tab: DemoPage, scripted: Scripted) -> None:
    await view(server_tab, "launch")
    await server_tab.at('#srv-form [name="max_model_len"]').fill("16384")
    form, wrong = server_tab.at("#srv-nodes-form"), server_tab.at('[data-node-field="hosts"] .srv-wrong')
    await form.locator('[name="hosts"]').fill("10.0.0.1, 10.0.0.2:8000")
    await form.locator("button").click()
    await expect(wrong).to_contain_text("“10.0.0.2:8000” is no host name or address.")
    await form.locator('[name="hosts"]').fill("10.0.0.1, 10.0.0.2")
    await form.locator('[name="way"]').select_option("router")
    await form.locator("button").click()
    lines = server_tab.at("#srv-nodes pre")
    await expect(lines).to_have_count(4)
    await expect(lines.first).to_contain_text("--max-model-len 16384")
    await expect(lines.last).to_contain_text("--worker-urls http://10.0.0.1:8000 http://10.0.0.2:8000")
    await expect(wrong).to_be_hidden()
    port = scripted.root.rpartition(":")[2]
    await server_tab.at('#srv-form [name="server_port"]').fill(port)
    taken = f"Port {port} is in use by another program."
    await expect(server_tab.at('[data-field="server_port"] .srv-wrong')).to_contain_text(taken)
    await expect(server_tab.at("#srv-line-docker")).to_contain_text(f"-p 127.0.0.1:{port}:8000")  # for another machine it may be right
    await server_tab.at("[data-srv-start]").click()
    await expect(server_tab.at("#server-notice")).to_contain_text(taken)
    await expect(server_tab.at("#srv-head .srv-state")).to_have_text("ready")


async def test_arguments_are_held_against_vllms_own_parser_before_a_start(server_tab: DemoPage) -> None:
    await view(server_tab, "launch")
    more, wrong = server_tab.at('#srv-form [name="extra"]'), server_tab.at('[data-field="extra"] .srv-wrong')
    await more.fill("--no-such-flag 1")
    await expect(server_tab.at("#srv-asked .spinner")).to_be_visible()
    await expect(wrong).to_contain_text("vLLM would not take it: unrecognized arguments: --no-such-flag", timeout=ENGINE_MS)
    await expect(more).to_have_attribute("aria-invalid", "true")
    await server_tab.at("[data-srv-start]").click()  # it is refused, and what answers goes on
    await expect(server_tab.at("#server-notice")).to_contain_text("More arguments: vLLM would not take it: unrecognized arguments")
    await expect(server_tab.at("#srv-head .srv-state")).to_have_text("ready")
    await more.fill("--seed 1")
    taken = re.compile(r"vLLM \d+\.\d+\.\d+\S* takes these arguments\.")
    await expect(server_tab.at("#srv-asked")).to_contain_text(taken, timeout=ENGINE_MS)
    await expect(wrong).to_be_hidden()
    await more.fill("")
    await expect(server_tab.at("#srv-asked")).to_be_empty()


async def test_metrics_are_plotted_and_have_values_under_the_pointer(server_tab: DemoPage) -> None:
    await view(server_tab, "metrics")
    await expect(server_tab.at('[data-figure="running"] dd')).to_have_text("0", timeout=30_000)
    plot = server_tab.at('[data-plot="requests"]')
    await expect(plot.locator("polyline, circle").first).to_be_attached(timeout=30_000)
    box = await plot.locator("svg").bounding_box()
    assert box is not None
    await server_tab.page.mouse.move(box["x"] + box["width"] * 0.993, box["y"] + box["height"] / 2)
    await expect(server_tab.at("#srv-tip")).to_contain_text(re.compile(r"\d\d:\d\d:\d\d · Running 0"))
    await server_tab.at('[data-srv-window="1800"]').click()
    await expect(server_tab.at('[data-srv-window="1800"]')).to_have_attribute("aria-pressed", "true")


async def test_another_server_is_used_and_its_silence_is_seen(server_tab: DemoPage, scripted: Scripted) -> None:
    with running("-m", "tests.scripted_server", "--port", "0", "--api-key", "the-key-of-it", cwd=Path(ROOT)) as other:
        address = other.wait_for(r"http://\S+").group()
        await view(server_tab, "launch")
        await server_tab.at('#srv-use [name="address"]').fill(address)
        await server_tab.at('#srv-use [name="key"]').fill("the-key-of-it")
        await server_tab.at('#srv-use button[type="submit"]').click()
        await expect(server_tab.at("#srv-head .srv-facts")).to_contain_text(address)
        await expect(server_tab.at("#srv-head .srv-state")).to_have_text("ready")
        assert await server_tab.at('#srv-use [name="key"]').input_value() == ""
        await expect(server_tab.at("#srv-trouble")).to_be_empty()
        other.signal(signal.SIGSTOP)
        try:
            await expect(server_tab.at("#srv-trouble .notice")).to_contain_text("has not answered")
        finally:
            other.signal(signal.SIGCONT)
        await expect(server_tab.at("#srv-trouble")).to_be_empty()
        await view(server_tab, "launch")
        await server_tab.at(f'[data-act="server_use"][data-value-address="{scripted.base_url}"]').click()
        await expect(server_tab.at("#srv-head .srv-facts")).to_contain_text(scripted.base_url)
        await expect(server_tab.at("#srv-head .srv-state")).to_have_text("ready")


async def test_disconnecting_and_connecting_again(server_tab: DemoPage) -> None:
    await server_tab.at('#srv-head [data-act="server_stop"]').click()
    await expect(server_tab.at("#srv-head .srv-state")).to_have_text("off")
    await server_tab.at('#srv-head [data-act="server_restart"]').click()
    await expect(server_tab.at("#srv-head .srv-state")).to_have_text("ready")
    await view(server_tab, "log")
    await expect(server_tab.at("#srv-log")).to_have_class(re.compile("srv-none"))
