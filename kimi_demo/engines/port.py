"""What the rest of the application may expect of anything that answers chat requests."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.events import Event


@dataclass(frozen=True)
class ModelInfo:
    """The model as `/v1/models` names it. max_model_len: tokens of context, None where the server does not say."""

    id: str
    max_model_len: int | None = None
    root: str | None = None


class ChatPort(Protocol):
    """Streams one reply as events: RoundStarted is the caller's; from here come ThoughtDelta, AnswerDelta, ToolCallDelta, Usage, Finished.

    Raises `Failure` with a code of the `endpoint.` family. Closing the iterator (or cancelling the task) closes the request at once.
    """

    info: ModelInfo

    def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]: ...

    async def complete_chat(self, request: ChatRequest) -> list[Event]:
        """The same reply in one piece, asked for without streaming (streamed tool calls can arrive empty under load, vllm#54701)."""
        ...

    def body(self, request: ChatRequest) -> dict[str, object]:
        """The JSON body that `stream` sends for `request`."""
        ...
