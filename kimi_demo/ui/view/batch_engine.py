"""What starting a batch on an engine means now: what is loaded first, what is stopped for it. Pure."""

from dataclasses import dataclass
from html import escape

from kimi_demo.batches.shelf import EngineName
from kimi_demo.engines.accelerators import Holder
from kimi_demo.engines.offline import State
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.notice import notice_html


@dataclass(frozen=True)
class EngineNow:
    """name: the one chosen; installed: whether vLLM is here; state: of the in-process engine; stops: who would give up the GPUs for it."""

    name: EngineName
    installed: bool
    state: State
    stops: Holder | None
    operator: bool


def engine_html(now: EngineNow, texts: Texts) -> str:
    say = texts.say
    if now.name == "offline" and not now.installed:
        return notice_html("warning", " ".join(texts.failure("batch.vllm_missing", {})))
    if now.stops is not None:
        words = say("batch_page.engine_stops", holder=say(f"accelerators.holder.{now.stops}"))
        return notice_html("warning", words if now.operator else f"{words} {say('batch_page.engine_operator')}")
    if now.name == "server":
        return escape(say("batch_page.engine_shares"))
    known = {"ready": "engine_ready", "loading": "engine_loading"}
    words = escape(say(f"batch_page.{known.get(now.state, 'engine_first')}"))
    return f"{words} {act_button('batch', 'batch_unload', say('batch.unload'))}" if now.operator and now.state == "ready" else words
