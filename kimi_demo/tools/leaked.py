"""Tool calls that a server left as marks in the text: read where there is only one way to read them. Pure.

vLLM 0.32 leaves them in the content when the section's mark is missing, older versions in the thought as well (MoonshotAI/Kimi-K2#89).
"""

import re

from kimi_demo.dialect.leaks import CODE
from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.tools.arguments import ArgumentsError, parse

MARK = "<|tool_call"  # how each of Kimi's tool marks begins, "<|tool_calls_section_begin|>" as well

_CALL = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<id>[^<>{}]{1,200}?)\s*<\|tool_call_argument_begin\|>(?P<arguments>.*?)<\|tool_call_end\|>", re.S
)
_SECTION = re.compile(r"<\|tool_calls_section_(?:begin|end)\|>")
_ID = re.compile(r"(?:functions\.)?(?P<name>.+?)(?::\d+)?", re.S)


def marked(reply: Reply) -> bool:
    """Whether marks of tool calls stand in the thought or the answer (in code they are quoted)."""
    return MARK in CODE.sub("", reply.answer) or MARK in CODE.sub("", reply.thought)


def leaked_calls(reply: Reply, names: tuple[str, ...]) -> list[Call]:
    """The calls that stand in the text, when that is all it can mean; [] otherwise.

    They must be whole, name tools that exist with arguments that are JSON objects, end the text that they stand in, and be the reply's
    last word: marks in the thought of a reply that has an answer are only talked about.
    """
    if reply.calls or reply.finish_reason == "length":
        return []
    text = reply.answer if reply.answer.strip() else reply.thought
    found = list(_CALL.finditer(CODE.sub(_blank, text)))
    if not found or MARK in _SECTION.sub("", _CALL.sub("", text)) or _SECTION.sub("", text[found[-1].end() :]).strip():
        return []
    calls = []
    for each in found:
        name = _name(each["id"], names)
        arguments = text[each.start("arguments") : each.end("arguments")].strip()
        try:
            parse(arguments)
        except ArgumentsError:
            return []
        if name is None:
            return []
        calls.append(Call(id=each["id"] if ":" in each["id"] else "", name=name, arguments=arguments))
    return calls


def without_calls(text: str) -> str:
    """`text` without the calls that were read in it: they go back as calls."""
    return _SECTION.sub("", _CALL.sub("", text)) if MARK in text else text


def _name(call_id: str, names: tuple[str, ...]) -> str | None:
    found = _ID.fullmatch(call_id)
    return found["name"] if found is not None and found["name"] in names else None


def _blank(match: re.Match[str]) -> str:
    """Keeps the places of what follows."""
    return " " * len(match[0])
