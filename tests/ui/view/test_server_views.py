"""What the Server tab draws: hostile names are text, gaps stay gaps, and what a button ends is said first."""

import time
from dataclasses import replace

import pytest

from kimi_demo.checks.result import CheckResult
from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.capabilities import Capabilities
from kimi_demo.engines.chat_engine import EngineState
from kimi_demo.engines.gpu_use import read_use, seen
from kimi_demo.engines.metrics.points import Point
from kimi_demo.engines.metrics.reading import Reading
from kimi_demo.engines.monitor import Health
from kimi_demo.engines.port import ModelInfo
from kimi_demo.engines.saved_launches import Start
from kimi_demo.ui.texts import LANGUAGES, texts
from kimi_demo.ui.view.server_charts import cards_html, charts_html, gpus_html
from kimi_demo.ui.view.server_check import check_html
from kimi_demo.ui.view.server_form import profiles_html, servers_html
from kimi_demo.ui.view.server_page import models_html
from kimi_demo.ui.view.server_state import Standing, head_html, left_html, steps_html, trouble_html

EN = texts("en")
EVIL = "<img src=x onerror=alert(1)>\"'"


def standing(name: str, **more: object) -> Standing:
    since = time.monotonic() - 3
    state = EngineState(name, since)  # type: ignore[arg-type]
    return replace(Standing(state, Health(), remote=False, model="Model", address="http://127.0.0.1:1/v1"), **more)  # type: ignore[arg-type]


def test_hostile_names_are_text() -> None:
    shown = [
        models_html([ModelInfo(EVIL, 8, EVIL)], Capabilities(version=EVIL), False, EN),
        profiles_html([EVIL], EN),
        servers_html([EVIL], "", "", EN),
        head_html(standing("ready", model=EVIL, address=EVIL), EN),
        trouble_html(standing("ready", health=Health("silent", time.monotonic()), last_words=[EVIL]), EN),
        check_html([CheckResult("models", "passed", 1.0, facts={"model": EVIL})], None, True, EN),
        gpus_html(read_use(f"0, GPU-1, {EVIL}, 10, 20, 5, 40, 100"), EN),
    ]
    assert all("&lt;img" in html and "<img" not in html for html in shown)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_button_puts_an_end_to_is_said_before_it_does(language: str) -> None:
    words = texts(language)
    calm = head_html(standing("ready"), words)
    assert "<details" not in calm and 'data-act="server_stop"' in calm
    busy = head_html(standing("ready", replies=3), words)
    assert busy.count("<details") == 2 and busy.count(words.say("server_page.ends_replies", count=3)) == 2
    taken = head_html(standing("off", stops="batch"), words)
    assert words.say("accelerators.holder.batch") in taken and 'data-value-takeover="true"' in taken
    assert "<details" not in head_html(standing("off", stops="batch", remote=True), words)  # a connection takes no GPU


def test_a_failed_start_shows_why_and_what_its_log_said() -> None:
    failed = standing("failed")
    failure = Failure("server.no_gpu", model="m", log="line one\nline <two>")
    shown = trouble_html(replace(failed, state=replace(failed.state, failure=failure)), EN)
    assert EN.failure("server.no_gpu", {})[0] in shown and "line &lt;two&gt;" in shown
    assert trouble_html(standing("ready"), EN) == "" == trouble_html(standing("off"), EN)


def test_the_steps_of_a_start_and_what_is_left() -> None:
    last = Start(phases=(("server.starting", 4.0), ("server.loading_weights", 10.0)), total=14.0, at="")
    going = standing("starting", steps=[("server.starting", 5.0)], last=last, left=9.5)
    going = replace(going, state=replace(going.state, phase=Phase("server.starting")))
    shown = steps_html(going, EN)
    assert 'data-state="running"' in shown and "<td>4.0</td>" in shown and "data-elapsed" in shown
    assert "About 10 s left" in left_html(going, EN) or "About 9 s left" in left_html(going, EN)
    assert "has not been started here" in left_html(replace(going, last=None, left=None), EN)
    assert "data-elapsed" not in steps_html(standing("ready", steps=[("server.starting", 5.0)]), EN)


def point(at: float, running: float | None) -> Point:
    return Point(at=at, running=running, waiting=0.0)


def test_plots_have_gaps_where_nothing_was_looked_at() -> None:
    points = [point(at, 2.0) for at in range(700, 750, 2)] + [point(at, 4.0) for at in range(900, 1000, 2)]
    shown = charts_html(points, 300.0, 1000.0, EN)
    requests = shown[shown.index('data-plot="requests"') : shown.index('data-plot="tokens"')]
    assert requests.count('<polyline data-line="0"') == 2
    tips = requests.split('data-tips="')[1].split('"')[0].split("|")
    assert len(tips) == 90 and "Running 2" in tips[5] and tips[40] == "" and "Running 4" in tips[-1]
    # Looks that are 15 s apart, with nobody watching, are still one line.
    seldom = charts_html([point(700 + 15 * step, 1.0) for step in range(20)], 300.0, 1000.0, EN)
    assert seldom[: seldom.index('data-plot="tokens"')].count('<polyline data-line="0"') == 1
    assert "second look" in charts_html([point(999, 1.0)], 300.0, 1000.0, EN)


def test_figures_that_a_server_does_not_give_are_dashes() -> None:
    shown = cards_html(point(1.0, 3.0), Reading(running=3.0), EN)
    assert "<dd>3</dd>" in shown and "<dd>–</dd>" in shown
    assert "no metrics" in cards_html(None, None, EN)


def test_gpus_as_the_driver_tells_them() -> None:
    told = "0, GPU-a, NVIDIA H200, 1024, 143771, 37, 41, 120.5\n1, GPU-b, NVIDIA H200, 0, 143771, [N/A], 38, [N/A]\nbroken\n"
    first, second = read_use(told)
    assert (first.load, first.temperature, first.power, first.used) == (0.37, 41.0, 120.5, 2**30)
    assert second.load is None and second.power is None
    assert [gpu.index for gpu in seen([first, second], "GPU-b")] == [1] and seen([first, second], "") == []
    assert "37.0 %" in gpus_html([first, second], EN) and gpus_html([], EN) == ""


def test_the_self_test_names_the_check_that_runs_and_how_it_ended() -> None:
    found = [CheckResult("health", "passed", 0.01), CheckResult("models", "failed", 0.2, "check.timeout", {"seconds": "3"})]
    running = check_html(found, 5.0, True, EN)
    assert 'data-check="thinking" data-state="running"' in running and 'data-act="server_check_stop"' in running
    stopped = check_html(found, None, True, EN)
    assert "Stopped before its end" in stopped and 'data-act="server_check"' in stopped
    whole = [CheckResult(name, "passed", 1.0) for name in ("health", "models", "thinking", "instant", "tool_call", "raw", "stop")]
    assert "Everything that this demo needs works." in check_html(whole, None, True, EN)
    assert check_html([], None, False, EN) == ""
