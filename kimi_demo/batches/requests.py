"""An OpenAI batch request, as `vllm run-batch` takes it: {"custom_id", "method", "url", "body": {"messages", …}}. Pure."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling

URL = "/v1/chat/completions"

_TAKEN = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "thinking_token_budget",
)
_WITHOUT_EFFECT = frozenset(("model", "messages", "user", "metadata", "store", "service_tier", "stream_options", "safety_identifier"))
# Allowed as long as they say what happens anyway.
_USUAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "stream": (False, True),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "logit_bias": ({},),
    "add_generation_prompt": (True,),
}


@dataclass(frozen=True, slots=True)
class Request:
    """messages: unchecked. changes: fields of `Sampling` that the request sets; thinking: None where it does not say."""

    messages: Any
    changes: dict[str, Any]
    thinking: bool | None


def read_request(value: dict[str, Any]) -> Request:
    """What the request asks. What would be answered in another way than it asks is refused, not ignored.

    Raises Failure: batches.request_url (url), batches.request_field (field), batches.request_value (field, problem).
    """
    url, method = value.get("url", URL), value.get("method", "POST")
    if url != URL or method != "POST":
        raise Failure("batches.request_url", url=f"{method} {url}", known=f"POST {URL}")
    body = {name: item for name, item in value["body"].items() if item is not None}
    changes: dict[str, Any] = {}
    thinking: bool | None = None
    for name, item in body.items():
        if name in _TAKEN:
            changes[name] = item
        elif name == "max_completion_tokens":
            changes["max_tokens"] = item
        elif name == "stop":
            changes["stop"] = (item,) if isinstance(item, str) else item
        elif name in ("response_format", "structured_outputs"):
            changes |= _schema(name, item)
        elif name in ("chat_template_kwargs", "thinking"):
            thinking = _thinking(name, item)
        elif name not in _WITHOUT_EFFECT and item not in _USUAL.get(name, ()):
            raise Failure("batches.request_field", field=name)
    if "max_completion_tokens" in body:
        changes["max_tokens"] = body["max_completion_tokens"]
    try:
        checked = Sampling(**changes)
    except ValidationError as error:
        first = error.errors()[0]
        raise Failure("batches.request_value", field=first["loc"][0], problem=first["msg"]) from None
    return Request(body.get("messages"), {name: getattr(checked, name) for name in changes}, thinking)


def _schema(name: str, item: Any) -> dict[str, Any]:
    if isinstance(item, dict):
        if name == "structured_outputs" and set(item) == {"json"} and isinstance(item["json"], dict):
            return {"json_schema": item["json"]}
        if name == "response_format":
            inner = item.get("json_schema")
            if item.get("type") == "text":
                return {}
            if item.get("type") == "json_object":
                return {"json_schema": {"type": "object"}}
            if item.get("type") == "json_schema" and isinstance(inner, dict) and isinstance(inner.get("schema"), dict):
                return {"json_schema": inner["schema"]}
    raise Failure("batches.request_field", field=name)


def _thinking(name: str, item: Any) -> bool:
    if isinstance(item, dict):
        if name == "chat_template_kwargs" and set(item) == {"thinking"} and isinstance(item["thinking"], bool):
            return item["thinking"]
        if name == "thinking" and item.get("type") in ("enabled", "disabled"):
            return bool(item["type"] == "enabled")
    raise Failure("batches.request_field", field=name)
