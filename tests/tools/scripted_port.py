"""A ChatPort that plays prepared replies and remembers what it was asked."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import AnswerDelta, Event, Finished, ThoughtDelta, ToolCallDelta
from kimi_demo.engines.port import ModelInfo


@dataclass
class ScriptedPort:
    """replies: one list of events per request, in order; `hang` after the last event of a reply: wait until cancelled.

    A request beyond the last reply is a mistake of the test (IndexError).
    """

    replies: Sequence[Sequence[Event]]
    hang: bool = False
    info: ModelInfo = ModelInfo("scripted")
    asked: list[ChatRequest] = field(default_factory=list)
    unstreamed: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)

    def body(self, request: ChatRequest) -> dict[str, object]:
        return {"messages": list(request.messages), "stream": True, "stream_options": {"include_usage": True}}

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        number = len(self.asked)
        self.asked.append(request)
        try:
            for event in self.replies[number]:
                yield event
                await asyncio.sleep(0)
            if self.hang:
                self.hanging.set()
                await asyncio.Event().wait()
        finally:
            self.closed.append(number)

    async def complete_chat(self, request: ChatRequest) -> list[Event]:
        number = len(self.asked)
        self.asked.append(request)
        self.unstreamed.append(number)
        return list(self.replies[number])


def calls(*given: tuple[str, str, Any], thought: str = "", answer: str = "", reason: str = "tool_calls") -> list[Event]:
    """A reply that calls tools: (id, name, arguments) each; arguments as raw text, or as what is dumped to JSON. In fragments."""
    events: list[Event] = [ThoughtDelta(thought)] if thought else []
    events += [AnswerDelta(answer)] if answer else []
    for index, (call_id, name, arguments) in enumerate(given):
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        events.append(ToolCallDelta(index, id=call_id, name=name))
        events += [ToolCallDelta(index, arguments=part) for part in (raw[:3], raw[3:]) if part]
    return [*events, Finished(reason)]


def says(text: str, thought: str = "", reason: str = "stop") -> list[Event]:
    events: list[Event] = [ThoughtDelta(thought)] if thought else []
    return [*events, AnswerDelta(text), Finished(reason)]
