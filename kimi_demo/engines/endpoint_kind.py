"""How each kind of server switches thinking, and which fields it takes. The one place that knows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from kimi_demo.dialect.conversation import ChatRequest, Message
from kimi_demo.dialect.sampling import Sampling

Kind = Literal["vllm", "moonshot", "openai"]

StreamOptions = Literal["continuous", "final", "none"]
"""How much usage is asked for with a stream: with every chunk, once at the end, or not at all."""

_WEAKER: dict[StreamOptions, StreamOptions | None] = {"continuous": "final", "final": "none", "none": None}
_STREAM_OPTIONS: dict[StreamOptions, dict[str, bool]] = {
    "continuous": {"include_usage": True, "continuous_usage_stats": True},
    "final": {"include_usage": True},
}


_OPENAI = frozenset(
    ("temperature", "top_p", "max_tokens", "seed", "stop", "presence_penalty", "frequency_penalty", "json_schema"),
)
_TAKES: dict[Kind, frozenset[str]] = {
    "vllm": _OPENAI | {"top_k", "min_p", "repetition_penalty", "thinking_token_budget"},
    "openai": _OPENAI,
    # temperature, top_p, n and the penalties are fixed by mode there; any other value is a 400.
    "moonshot": frozenset(("max_tokens", "stop")),
}


def takes(kind: Kind, field: str) -> bool:
    """Whether a server of that kind takes the field of `Sampling`."""
    return field in _TAKES[kind]


def kind_by_name(base_url: str, owners: Sequence[str]) -> Kind | None:
    """The kind that address and `owned_by` of the served models give away; None where they do not."""
    host = (urlsplit(base_url).hostname or "").lower()
    if any(host == domain or host.endswith(f".{domain}") for domain in ("moonshot.ai", "moonshot.cn", "kimi.com")):
        return "moonshot"
    if any(owner in ("vllm", "sglang") for owner in owners):
        return "vllm"
    if "moonshot" in owners:
        return "moonshot"
    return None


@dataclass(frozen=True)
class Wire:
    """What requests to one server look like.

    reasoning_field: the name under which an assistant message carries its reasoning back. vLLM reads `reasoning`, SGLang and Moonshot
    `reasoning_content`; None: it is left out (OpenAI's own API has no such field).
    structured: the field under which a JSON schema goes: vLLM has its own beside OpenAI's.
    """

    kind: Kind
    model: str
    stream_options: StreamOptions
    reasoning_field: str | None
    structured: Literal["structured_outputs", "response_format"] = "response_format"

    @classmethod
    def of(cls, kind: Kind, model: str, owner: str) -> "Wire":
        field = None if kind == "openai" else "reasoning" if kind == "vllm" and owner != "sglang" else "reasoning_content"
        structured: Literal["structured_outputs", "response_format"] = "structured_outputs" if field == "reasoning" else "response_format"
        return cls(kind, model, "continuous" if kind == "vllm" else "final", field, structured)

    def asking_less(self) -> "Wire | None":
        """The same with weaker stream options, for a server that rejects them; None where there is nothing left to drop."""
        weaker = _WEAKER[self.stream_options]
        return None if weaker is None else replace(self, stream_options=weaker)

    def chat_body(self, request: ChatRequest, *, stream: bool = True) -> dict[str, Any]:
        """The JSON of a chat completion."""
        body: dict[str, Any] = {"model": self.model, "messages": [self._message(message) for message in request.messages]}
        body |= self._streamed(stream) | self._sampling(request.sampling)
        if self.kind == "vllm":
            # Kimi's template asks `thinking is false`: a JSON boolean, under this key and no other. `enable_thinking` or
            # `reasoning_effort` move vLLM's parser but not the template, and thought and answer change places.
            body["chat_template_kwargs"] = {"thinking": bool(request.thinking)}
        elif self.kind == "moonshot":
            body["thinking"] = {"type": "enabled" if request.thinking else "disabled"}
        if request.tools:
            body["tools"] = list(request.tools)
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
            if not request.parallel and self.kind != "moonshot":  # whose API does not name the field
                body["parallel_tool_calls"] = False
        body |= request.extra
        return {name: value for name, value in body.items() if value is not None or name not in request.extra}

    def raw_body(self, prompt: str, sampling: Sampling) -> dict[str, Any]:
        """The JSON of a streamed text completion."""
        return {"model": self.model, "prompt": prompt} | self._streamed(True) | self._sampling(sampling)

    def tokenize_body(self, request: ChatRequest) -> dict[str, Any]:
        """The JSON for vLLM's /tokenize, rendered as the chat completion would be."""
        chat = self.chat_body(request, stream=False)
        return {name: chat[name] for name in ("model", "messages", "tools", "chat_template_kwargs") if name in chat}

    def _streamed(self, stream: bool) -> dict[str, Any]:
        if not stream:
            return {}
        options = _STREAM_OPTIONS.get(self.stream_options)
        return {"stream": True} | ({"stream_options": options} if options else {})

    def _sampling(self, sampling: Sampling) -> dict[str, Any]:
        fields = sampling.openai_fields() | sampling.vllm_fields()
        sent = {name: value for name, value in fields.items() if takes(self.kind, name)}
        if sampling.json_schema is None or not takes(self.kind, "json_schema"):
            return sent
        if self.structured == "structured_outputs":
            return sent | {"structured_outputs": {"json": sampling.json_schema}}
        return sent | {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": sampling.json_schema}}}

    def _message(self, message: Message) -> Message:
        if "reasoning" not in message or self.reasoning_field == "reasoning":
            return dict(message)
        rest = {name: value for name, value in message.items() if name != "reasoning"}
        return rest if self.reasoning_field is None else rest | {self.reasoning_field: message["reasoning"]}
