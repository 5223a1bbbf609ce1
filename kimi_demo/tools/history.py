"""What of a tool conversation goes back to the model: its own turn with reasoning and ids, and what the tools returned. Pure."""

import json
from collections.abc import Sequence
from typing import NoReturn

from kimi_demo.dialect.conversation import Message, assistant_in_loop, tool_answer
from kimi_demo.dialect.reply import Call, Reply
from kimi_demo.tools.arguments import MOST_BYTES
from kimi_demo.tools.leaked import without_calls


def history(messages: Sequence[Message], replies: Sequence[Reply]) -> list[Message]:
    """`messages`, and after them the rounds whose calls were all answered; a reply without a call leaves nothing to go back."""
    found = list(messages)
    for reply in replies:
        if has_calls(reply):
            found += turn(reply, calls_in(found))
    return found


def has_calls(reply: Reply) -> bool:
    """Whether it calls anything: what came without a name is no call."""
    return any(call.name for call in reply.calls)


def calls_in(messages: Sequence[Message]) -> int:
    """How many calls the conversation holds: Kimi's ids count over all of it."""
    return sum(len(message.get("tool_calls") or ()) for message in messages)


def turn(reply: Reply, earlier_calls: int) -> list[Message]:
    """The reply as it goes back, and the answers to its calls."""
    ids = distinct_ids(reply.calls, earlier_calls)
    message = assistant_in_loop(reply)
    for name in ("content", "reasoning"):
        if message[name]:
            message[name] = without_calls(message[name])
    message["content"] = message["content"] or None
    for sent, call_id in zip(message["tool_calls"], ids, strict=True):
        sent["id"] = call_id
        sent["function"]["arguments"] = sendable(sent["function"]["arguments"])
    return [message, *(tool_answer(call_id, answer_to(call)) for call, call_id in zip(reply.calls, ids, strict=True))]


def answer_to(call: Call) -> str:
    """What the model gets of a call: its result, or the error instead."""
    return call.result if call.result is not None else call.error or ""


def sendable(arguments: str) -> str:
    """`arguments` as written, or {} where that is no JSON object, holds NaN or Infinity, or is larger than any tool takes.

    vLLM 0.32 makes {} of what is no object as well (with a log line); other servers refuse the whole request, this one and every later
    one. What was wrong stands in the call's result.
    """
    if len(arguments.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        return "{}"
    try:
        value = json.loads(arguments, parse_int=str, parse_float=str, parse_constant=_refused)
    except (ValueError, RecursionError):
        return "{}"
    return arguments if isinstance(value, dict) and value else "{}"


def distinct_ids(calls: Sequence[Call], earlier_calls: int) -> list[str]:
    """The ids that results refer to: verbatim, except that of two equal ones in a round the later is renumbered.

    Only what is sent changes; the call is shown with the id that the model wrote.
    """
    ids: list[str] = []
    for index, call in enumerate(calls):
        number = earlier_calls + index
        call_id = call.id
        while call_id in ids:
            call_id = kimi_id(call.name, number)
            number += 1
        ids.append(call_id)
    return ids


def kimi_id(name: str, number: int) -> str:
    """Kimi's form of a call's id (MoonshotAI/Kimi-K2, docs/tool_call_guidance.md)."""
    return f"functions.{name}:{number}"


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)
