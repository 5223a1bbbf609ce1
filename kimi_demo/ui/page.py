"""The page: a header and five tabs, in Gradio Blocks. What is written live is drawn by assets/live.js into the `.live` boxes."""

import gradio as gr

from kimi_demo.ui import api, batch_tab, chat_tab, qa_tab, server_tab, tools_tab
from kimi_demo.ui.audience import ALL, Feature
from kimi_demo.ui.header import header_html
from kimi_demo.ui.services import Services
from kimi_demo.ui.texts import Texts

SCRIPTS = (
    "live",
    "composer",
    "chat",
    "parameters",
    "request",
    "images",
    "raw",
    "pair",
    "bench",
    "tools",
    "batch",
    "batch_drop",
    "operator_tab",
    "launch",
    "server",
    "qa",
    *("publish", "rate", "limits", "carried", "switches"),
)
"""Of assets/, in the order in which they are carried out."""
SHEETS = ("page", "thinking", "chat", "bench", "tools", "batch", "server", "qa", "publish", "rate", "pair", "switches")
_OF: dict[str, Feature] = {
    "request": "own",
    "raw": "raw",
    "batch": "batch",
    "batch_drop": "batch",
    "operator_tab": "operator",
    "launch": "operator",
    "server": "operator",
    "qa": "operator",
    "publish": "operator",
    "rate": "operator",
    "pair": "operator",
}
"""Which of them only those with a feature need."""


def build(services: Services, features: frozenset[Feature] = ALL) -> gr.Blocks:
    """features: what those who will see it may use; nothing else is in it."""
    texts = services.texts
    blocks: gr.Blocks
    with gr.Blocks(title=texts.say("page.title"), analytics_enabled=False, fill_width=True) as blocks:
        gr.HTML(header_html(texts), apply_default_css=False)
        with gr.Tabs(elem_id="tabs", overflow_behavior="wrap"):
            with gr.Tab(texts.say("chat.tab"), id="chat", elem_id="tab-chat"):
                chat_tab.build(services, blocks, raw="raw" in features, pair="operator" in features)
            with gr.Tab(texts.say("tools.tab"), id="tools", elem_id="tab-tools"):
                tools_tab.build(services)
            if "batch" in features:
                with gr.Tab(texts.say("batch.tab"), id="batch", elem_id="tab-batch"):
                    batch_tab.build(services, blocks)
            if "operator" in features:
                with gr.Tab(texts.say("server_page.tab"), id="server", elem_id="tab-server"):
                    server_tab.build()
                with gr.Tab(texts.say("qa_page.tab"), id="qa", elem_id="tab-qa"):
                    qa_tab.build()
        if features != ALL:
            gr.HTML('<div id="limits" role="note"></div>', apply_default_css=False)
        api.build(services, batches="batch" in features)
    return blocks


def theme() -> gr.Theme:
    """Gradio's base theme with system fonts (nothing is fetched), quiet labels and visible borders."""
    base = gr.themes.Base(
        primary_hue="indigo",
        neutral_hue="slate",
        radius_size="lg",
        font=["system-ui", "-apple-system", "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
    )
    return base.set(
        # Darker than slate 400, so that small print can be read (4.5:1 also on the tinted background of what is chosen).
        body_text_color_subdued="#586579",
        body_text_color_subdued_dark="*neutral_400",
        input_placeholder_color="#647084",
        input_placeholder_color_dark="*neutral_400",
        color_accent="*primary_600",
        color_accent_soft_dark="#273349",
        block_border_width="0px",
        block_shadow="none",
        block_background_fill="transparent",
        block_background_fill_dark="transparent",
        block_padding="0px",
        block_title_text_weight="500",
        block_title_text_size="*text_sm",
        block_label_text_size="*text_sm",
        input_border_width="1px",
        input_background_fill="*background_fill_primary",
        input_background_fill_dark="*background_fill_secondary",
        button_large_padding="8px 18px",
        button_large_text_weight="550",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_text_color="white",
        button_secondary_background_fill="transparent",
        button_secondary_background_fill_hover="*background_fill_secondary",
        button_secondary_background_fill_dark="transparent",
        button_secondary_border_color="*border_color_primary",
        button_border_width="1px",
        button_cancel_background_fill="*background_fill_primary",
        layout_gap="12px",
    )


def _shown(name: str, features: frozenset[Feature]) -> bool:
    """Whether a page with these features needs that file; the limits are for those who have not all of them."""
    return features != ALL if name == "limits" else _OF.get(name, "page") in features


def head(words: Texts, features: frozenset[Feature] = ALL) -> str:
    """Our style sheet and script, and the words that the style sheet shows: on copy buttons, and while the connection is lost.

    Linked, not given to Gradio as `css`: it rewrites selectors, and `:root[…]` no longer matches then.
    """
    names = "; ".join(f'--kd-{key}: "{words.say(f"page.{key}")}"' for key in ("copy", "copied", "lost"))
    sheets = "".join(f'<link rel="stylesheet" href="kimi/static/{name}.css">' for name in SHEETS if _shown(name, features))
    return f"{sheets}<style>:root {{ {names} }}</style>" + "".join(
        f'<script src="kimi/static/{name}.js" defer></script>' for name in SCRIPTS if _shown(name, features)
    )
