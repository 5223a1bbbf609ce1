"""Messages in the OpenAI shape, and what of a conversation is sent back to the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kimi_demo.dialect.images import content
from kimi_demo.dialect.reply import Reply
from kimi_demo.dialect.sampling import Sampling

Message = dict[str, Any]
"""One message as it goes over the wire: {"role": …, "content": …, …}. Plain JSON, since the server defines its shape."""


@dataclass(frozen=True)
class ChatRequest:
    """One request for a reply, independent of the kind of server that will answer it.

    tools: in the OpenAI shape (`Tool.schema()`); tool_choice: "auto", "none", "required" or {"type": "function", …};
    parallel: whether a reply may hold several calls.
    extra: fields of the body as they are, in place of what would stand there; None leaves a field out.
    """

    messages: Sequence[Message]
    sampling: Sampling
    thinking: bool = True
    tools: Sequence[dict[str, Any]] = field(default_factory=tuple)
    tool_choice: str | dict[str, Any] | None = None
    parallel: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)


def user(text: str, images: Sequence[str] = ()) -> Message:
    """images: by id, in the order in which they were chosen."""
    return {"role": "user", "content": content(text, images)}


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def past_turn(question: str, answer: str, images: Sequence[str] = ()) -> list[Message]:
    """A finished turn in the history: reasoning of past turns is left out, as Kimi's template renders it empty anyway."""
    return [user(question, images), {"role": "assistant", "content": answer}]


def assistant_in_loop(reply: Reply) -> Message:
    """The assistant message of a running tool loop: it keeps its reasoning and the ids verbatim.

    The template prints an id as it is and the function's name nowhere else, so foreign ids teach the model a wrong form.
    Reasoning goes in as `reasoning`, which vLLM hands to the template under both of its names.
    """
    message: Message = {"role": "assistant", "content": reply.answer or None, "reasoning": reply.thought}
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls
        ]
    return message


def tool_answer(call_id: str, content: str) -> Message:
    """What a tool returned. No `name`: the template would print it in place of the role."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
