"""What an empty tab offers: questions that can be tried with one click."""

from html import escape

from kimi_demo.ui.texts import Texts

EXAMPLES: dict[str, tuple[str, ...]] = {
    # The guide's own questions come first; they are content, not interface, so they are the same in every language.
    "chat": ("什么是大模型？", "Why is the sky blue?", "Who are you?"),
    "tools": (
        "用中文回答：strawberry中有多少个r?",
        "用中文回答：9.11和9.9，哪个小?",
        "How many r are in strawberry?",
        "Which is smaller, 9.11 or 9.9?",
        "What is 123456789 times 987654321, and what is 17 plus 25?",
    ),
    "raw": (),
    "pair": ("Why is the sky blue?", "用三句话介绍大模型。", "Which is larger, 9.11 or 9.9?"),
    "batch": (
        "给我一个关于大模型的简短介绍。",
        "给我一个关于大模型的简短介绍。\nWhat is a large language model?\nWhy is the sky blue?\nName three primary colours.",
    ),
}


def empty_state(kind: str, texts: Texts) -> str:
    """The content of an empty conversation (or table) of `kind`."""
    field = "batch-prompts" if kind == "batch" else f"{kind}-input"
    buttons = "".join(
        f'<button type="button" class="try" data-fill="{field}" data-text="{escape(text)}">{escape(_label(text, texts))}</button>'
        for text in EXAMPLES[kind]
    )
    title, hint = texts.say(f"{kind}.empty.title"), texts.say(f"{kind}.empty.hint")
    return f'<div class="empty"><h3>{escape(title)}</h3><p>{escape(hint)}</p><div class="examples">{buttons}</div></div>'


def _label(text: str, texts: Texts) -> str:
    lines = text.splitlines()
    return lines[0] if len(lines) == 1 else texts.say("batch.example_lines", first=lines[0], more=len(lines) - 1)
