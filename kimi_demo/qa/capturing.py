"""A reply that somebody has seen, as a case: what was asked goes in, and what the person says of the reply is what to look for. Pure."""

import re
from typing import Any

import yaml

from kimi_demo.dialect.reply import Reply
from kimi_demo.qa.case import Case, Words
from kimi_demo.tools.guide import GUIDE_TOOLS

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "presence_penalty", "frequency_penalty", "repetition_penalty")
_GUIDE = {tool.name: tool.schema() for tool in GUIDE_TOOLS}


def case_of(first: Reply, *, case_id: str, note: str = "", title: str = "") -> Case:
    """The case that asks again what `first`, the first round of a chat or tool run, was asked.

    note: what the person says of it; the case is then judged by hand with these words beside it. As many calls as this reply had are
    expected again, where its arguments were right.
    Raises ValueError (pydantic's ValidationError) where the request cannot be a case.
    """
    sent = first.request
    tools = [_tool(tool) for tool in sent.get("tools") or []]
    case: dict[str, Any] = {"id": _id(case_id), "title": title, "manual": note, "checks": _checks(first)}
    if "prompt" in sent:
        case |= {"mode": "raw", "prompt": sent["prompt"]}
    else:
        off = (sent.get("chat_template_kwargs") or {}).get("thinking") is False or (sent.get("thinking") or {}).get("type") == "disabled"
        case |= {"mode": "instant" if off else "thinking", "messages": sent.get("messages"), "tools": tools}
        if sent.get("tool_choice") is not None:
            case["tool_choice"] = sent["tool_choice"]
    case["parameters"] = {name: sent[name] for name in _SAMPLING if sent.get(name) is not None}
    return Case.model_validate(case)


def as_yaml(name: str, title: Words, cases: list[Case]) -> str:
    """A suite's file with these cases, to be read by `reading.read_suite`."""
    written = [case.model_dump(mode="json", exclude_defaults=True) for case in cases]
    whole = {"name": name, "title": title, "cases": written}
    return str(yaml.safe_dump(whole, allow_unicode=True, sort_keys=False, width=120))


def _checks(first: Reply) -> dict[str, Any]:
    checks: dict[str, Any] = {"no_leaks": True, "closed": first.finish_reason != "length"}
    good = bool(first.calls) and all(call.problems == () for call in first.calls)
    if good:
        checks["calls"] = {"first_round": len(first.calls), "valid": True}
    return checks


def _tool(schema: dict[str, Any]) -> Any:
    function = schema.get("function") or {}
    if _GUIDE.get(str(function.get("name"))) == schema:
        return function["name"]
    return {name: function[name] for name in ("name", "description", "parameters") if name in function}


def _id(text: str) -> str:
    """`text` in the letters that an id may have."""
    plain = re.sub(r"[^a-z0-9_.-]+", "-", text.lower()).strip("-._")
    return plain[:80] or "case"
