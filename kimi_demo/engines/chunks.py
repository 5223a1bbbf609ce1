"""One parsed chunk of a chat or text completion → events. Pure but for the clock that throttles running token counts."""

import json
import time
from collections.abc import Callable
from typing import Any, Literal

from kimi_demo.dialect.events import AnswerDelta, Event, Finished, ThoughtDelta, ToolCallDelta, Usage
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sound import sound
from kimi_demo.engines.thought_stream import ThoughtStream

ContentOpens = Literal["answer", "marked", "thought"]
"""What the `content` of a reply begins with where no reasoning came in a field of its own.

answer: content is the answer (thinking is off, or the server is known to split).
marked: the answer, unless its text starts with `<think>`.
thought: the thought, up to `</think>` (the prompt opened it, and nothing shows that the server splits).
"""

USAGE_EVERY_S = 0.25


class ChunkReader:
    """Reads one reply. `read` each chunk as it comes, then `end` (the stream ended) or `broken` (it was cut).

    Whether a server splits the thought off is judged by evidence, strongest first:
    1. text in `reasoning` or `reasoning_content`: it splits; content is the answer, `</think>` in it or not.
    2. `usage.completion_tokens_details.reasoning_tokens`, which vLLM fills only with a reasoning parser
       (null without; vllm 0.32 entrypoints/openai/chat_completion/serving.py): it splits, and this thought is empty.
    3. otherwise `content_opens`. With "thought" the text is shown as thought *at once*, so that a live stream never stalls. If it then
       stops without `</think>` and without a tool call, it was no thought after all (a model that does not think): its text is given
       again as the answer. Cut off by the token limit, it stays what it most likely is, an unfinished thought.

    goes_on: the text surely begins inside a thought, whose beginning is known already: rule 2 does not hold, rule 3 gives nothing again.
    parses: what this reply has shown: True where rule 1 or 2 held, False where content held `</think>`, None where neither.
    repeated: rule 3 had to give the text again as the answer.
    """

    def __init__(
        self, content_opens: ContentOpens = "answer", *, goes_on: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.parses: bool | None = None
        self.repeated = False
        self._splitter = None if content_opens == "answer" else ThoughtStream(opened=content_opens == "thought")
        self._assumed = content_opens == "thought" and not goes_on
        self._goes_on = goes_on
        self._split_thought: list[str] = []
        self._clock = clock
        self._usage: dict[str, Any] | None = None
        self._usage_at = float("-inf")
        self._finish: str | None = None
        self._calls: list[tuple[int, str, bool]] = []  # (the server's index, id, name came), by our index

    def read(self, chunk: Any) -> list[Event]:
        """The events of one chunk, most often one."""
        events: list[Event] = []
        if not isinstance(chunk, dict):
            return events
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
            if self._splitter is not None and not self._goes_on and _reasoning_counted(usage):
                self._splits(events)
        choices = chunk.get("choices")
        if choices:
            self._choice(choices[0], events)
        if self._usage is usage is not None:
            now = self._clock()
            if now - self._usage_at >= USAGE_EVERY_S:
                self._usage_at = now
                events.append(usage_event(usage, final=False))
        return events

    def _choice(self, choice: Any, events: list[Event]) -> None:
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            reasoning = delta.get("reasoning") or delta.get("reasoning_content")
            if reasoning and isinstance(reasoning, str):
                if self.parses is None:
                    self._splits(events)
                events.append(ThoughtDelta(sound(reasoning)))
            content = delta.get("content")
            if content and isinstance(content, str):
                self._content(sound(content), events)
            calls = delta.get("tool_calls")
            if calls:
                self._tool_calls(calls, events)
        text = choice.get("text")  # /v1/completions
        if text and isinstance(text, str):
            self._content(sound(text), events)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
        if isinstance(choice.get("usage"), dict):  # Moonshot's API puts it here
            self._usage = choice["usage"]

    def _splits(self, events: list[Event]) -> None:
        """The server has shown that it splits by itself."""
        self.parses = True
        self._release(events)
        self._splitter = None

    def _content(self, text: str, events: list[Event]) -> None:
        if self._splitter is None:
            events.append(AnswerDelta(text))
            return
        self._put(*self._splitter.feed(text), events)
        if self._splitter.closed:
            self.parses = False

    def _put(self, thought: str, answer: str, events: list[Event]) -> None:
        if thought:
            self._split_thought.append(thought)
            events.append(ThoughtDelta(thought))
        if answer:
            events.append(AnswerDelta(answer))

    def _release(self, events: list[Event]) -> None:
        if self._splitter is not None:
            self._put(*self._splitter.flush(), events)

    def _tool_calls(self, calls: Any, events: list[Event]) -> None:
        for position, call in enumerate(calls if isinstance(calls, list) else []):
            if not isinstance(call, dict):
                continue
            function = call.get("function")
            function = function if isinstance(function, dict) else {}
            call_id, name, arguments = call.get("id") or "", function.get("name") or "", function.get("arguments")
            if not isinstance(arguments, str):  # some servers send the object itself
                arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
            given = call.get("index")
            index = self._index(given if isinstance(given, int) else position, str(call_id), bool(name))
            _, known_id, named = self._calls[index]
            # Some servers repeat id and name with every fragment; an event carries them once.
            shown_id, shown_name = "" if known_id else sound(str(call_id)), "" if named else sound(str(name))
            event = ToolCallDelta(index, shown_id, shown_name, sound(arguments))
            self._calls[index] = (self._calls[index][0], known_id or str(call_id), named or bool(name))
            if event.id or event.name or event.arguments:
                events.append(event)

    def _index(self, given: int, call_id: str, named: bool) -> int:
        """Our number of the call that a fragment belongs to: the last one with the server's number `given`, unless the fragment
        starts another (a server may give all its calls the number 0, but not the same id)."""
        for index in range(len(self._calls) - 1, -1, -1):
            server_index, known_id, _ = self._calls[index]
            if server_index == given and not (named and call_id and known_id and call_id != known_id):
                return index
            if server_index == given:
                break
        self._calls.append((given, "", False))
        return len(self._calls) - 1

    def end(self) -> list[Event]:
        """The last events of a reply: what was held back, the exact usage, the finish reason.

        Raises `Failure("endpoint.broke_off")` where no finish reason has come; call `broken` then.
        """
        if self._finish is None:
            raise Failure("endpoint.broke_off")
        events: list[Event] = []
        self._release(events)
        whole = "".join(self._split_thought)
        unclosed = self._splitter is not None and self._splitter.in_thought and self._assumed
        if unclosed and whole.strip() and not self._calls and self._finish != "length":
            self.repeated = True
            events.append(AnswerDelta(whole))
        if self._usage is not None:
            events.append(usage_event(self._usage, final=True))
        events.append(Finished(self._finish))
        return events

    def broken(self) -> list[Event]:
        """What is still to be told of a reply that was cut: text held back, and the last running count."""
        events: list[Event] = []
        self._release(events)
        if self._usage is not None:
            events.append(usage_event(self._usage, final=False))
        return events


def _reasoning_counted(usage: dict[str, Any]) -> bool:
    details = usage.get("completion_tokens_details")
    return isinstance(details, dict) and isinstance(details.get("reasoning_tokens"), int)


def usage_event(usage: dict[str, Any], *, final: bool) -> Usage:
    """The wire's usage object as an event. SGLang and Moonshot put reasoning_tokens and cached_tokens at its top level."""
    return Usage(
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        reasoning_tokens=_count(usage.get("completion_tokens_details"), "reasoning_tokens", usage),
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens", usage),
        final=final,
    )


def _count(holder: Any, name: str, fallback: dict[str, Any] | None = None) -> int | None:
    value = holder.get(name) if isinstance(holder, dict) else None
    if value is None and fallback is not None:
        value = fallback.get(name)
    return value if isinstance(value, int) else None
