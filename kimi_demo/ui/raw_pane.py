"""Raw completions, the second mode of the chat tab: a prompt as text, sent to /v1/completions as it stands."""

from dataclasses import replace
from html import escape

import gradio as gr

from kimi_demo.dialect.conversation import ChatRequest, Message, user
from kimi_demo.dialect.events import Asked, RoundStarted
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.images import image_ids
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.runs.conversations import shortened
from kimi_demo.runs.run import Run
from kimi_demo.tasks import complete
from kimi_demo.ui.composer import QUICK, live_box, wire
from kimi_demo.ui.parameters import max_tokens_given, needed, sampling
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.notice import notice_html

GUIDE_PROMPT = "我想问你，什么是深度学习算法？<think>\n"
"""The deployment guide's request to /v1/completions, with temperature 0 and max_tokens 1024."""
GUIDE_MAX_TOKENS = 1024


def switch(texts: Texts) -> None:
    """The two modes of the tab; assets/raw.js shows one and remembers which."""
    modes = "".join(
        f'<button type="button" role="radio" aria-checked="false" data-chat-mode="{mode}">{escape(texts.say(f"raw.mode.{mode}"))}</button>'
        for mode in ("chat", "raw")
    )
    label = escape(texts.say("raw.mode.label"))
    gr.HTML(f'<div class="modes" role="radiogroup" aria-label="{label}">{modes}</div>', elem_id="chat-mode", apply_default_css=False)


def build(services: Services) -> None:
    texts = services.texts
    with gr.Column(elem_id="raw-pane"):
        gr.HTML(f'<p class="fine">{escape(texts.say("raw.note"))}</p>', apply_default_css=False)
        field = gr.Textbox(
            GUIDE_PROMPT, label=texts.say("raw.input"), show_label=False, lines=4, max_lines=14, elem_id="raw-input", container=False
        )
        with gr.Row(elem_classes="options"):
            temperature = gr.Number(0, label=texts.say("parameter.temperature.label"), step=0.1, elem_id="raw-temperature", scale=0)
            max_tokens = gr.Number(GUIDE_MAX_TOKENS, label=texts.say("page.max_tokens"), elem_id="raw-max-tokens", scale=0)
            render = gr.Button(texts.say("raw.render"), size="sm", scale=0, elem_id="raw-render")
            guide = gr.Button(texts.say("raw.guide"), size="sm", scale=0, elem_id="raw-guide")
            run = gr.Button(texts.say("page.run"), variant="primary", scale=0, elem_id="raw-run")
            stop = gr.Button(texts.say("page.stop"), variant="stop", scale=0, elem_id="raw-stop")
        notice = gr.HTML("", elem_id="raw-notice", elem_classes="field-notice", apply_default_css=False)
        live_box("raw", texts.say("raw.label"))

    async def start(request: gr.Request, group: str, prompt: str, heat: float | None, limit: float | None) -> None:
        chosen = sampling("tools", temperature=needed("temperature", heat), max_tokens=max_tokens_given(limit), top_p=1.0)
        start_raw(services, services.access.owner_of(request), group, prompt, chosen)

    async def on_render(request: gr.Request, conversation: str, typed: str) -> tuple[object, str]:
        try:
            prompt, images = await rendered_conversation(services, services.access.owner_of(request), conversation, typed)
        except Failure as failure:
            return gr.skip(), services.notice(failure)
        return prompt, notice_html("info", texts.say("raw.images_left_out", count=images)) if images else ""

    wire(
        services,
        "raw",
        field=field,
        send=run,
        stop=stop,
        clear=None,
        notice=notice,
        settings=[temperature, max_tokens],
        start=start,
        keep_text=True,
    )
    opened = gr.Textbox(visible=False)
    render.click(on_render, [opened, field], [field, notice], js="(_, text) => [window.kimi.conversation(), text]", **QUICK)
    guide.click(lambda: (GUIDE_PROMPT, 0, GUIDE_MAX_TOKENS, ""), None, [field, temperature, max_tokens, notice], **QUICK)


def start_raw(services: Services, owner: str, group: str, prompt: str, chosen: Sampling) -> Run:
    """A completion of `prompt`. Raises Failure: prompt.empty, prompt.too_long, runs.too_many."""
    services.chats.check(prompt)

    async def work(run: Run) -> None:
        await complete(run, services.chat_engine, prompt, chosen)

    asked = Asked(prompt, chosen.model_dump(exclude_none=True))
    return services.registry.start(owner, "raw", work, title=shortened(prompt, 80), asked=asked, group=group)


async def rendered_conversation(services: Services, owner: str, conversation_id: str, typed: str) -> tuple[str, int]:
    """The prompt that the chat template made of the last turn of the open conversation; of `typed` as a message where there is none.

    With the number of images in it that were left out: a raw prompt is text. Raises Failure: prompt.empty, raw.not_ready, raw.no_template.
    """
    endpoint = services.chat_engine.endpoint
    if endpoint is None:
        raise Failure("raw.not_ready")
    request = await _last_request(services, owner, conversation_id)
    if request is None:
        services.chats.check(typed)
        request = ChatRequest([user(typed)], Sampling())
    prompt = await endpoint.render(replace(request, messages=[text_of(message) for message in request.messages]))
    if prompt is None:
        raise Failure("raw.no_template")
    return prompt, len(image_ids(list(request.messages)))


def text_of(message: Message) -> Message:
    """The message without its images."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return message | {"content": "".join(part.get("text", "") for part in content if part.get("type") == "text")}


async def _last_request(services: Services, owner: str, conversation_id: str) -> ChatRequest | None:
    chats = services.chats
    found = await (chats.conversations.find(conversation_id, owner) if conversation_id else chats.conversations.latest(owner))
    if found is None or found.deleted:
        return None
    for run in reversed((await chats.shown(found)).runs):
        sent = next((item.event for item in run.entries if isinstance(item.event, RoundStarted)), None)
        messages: list[Message] | None = sent.request.get("messages") if sent is not None else None
        if messages and run.asked is not None:
            return ChatRequest(messages, Sampling(), thinking=bool(run.asked.parameters.get("thinking", True)))
    return None
