"""A script as it goes over the wire: SSE frames, or one JSON object. Pure."""

import json
import re
from collections.abc import Iterable
from typing import Any

from tests.scripted_script import Ask, Script, pieces

CREATED = 1_760_000_000


def prompt_tokens(messages: Iterable[Any], tools: Any = None) -> int:
    """A count that grows with what is sent: pieces of the contents, four a message, and the tools' JSON."""
    said = [message for message in messages if isinstance(message, dict)]
    return sum(4 + len(pieces(str(message.get("content") or ""))) for message in said) + (len(pieces(json.dumps(tools))) if tools else 0)


def frames(script: Script, ask: Ask, model: str, *, raw: bool = False) -> list[bytes]:
    """Every SSE frame of the reply, in order, made before the first is sent. raw: as /v1/completions gives it."""
    options = ask.body.get("stream_options") or {}
    asked = bool(script.usage and options.get("include_usage"))
    running = asked and bool(options.get("continuous_usage_stats"))
    prompt = _prompt_count(ask)
    kind = "text_completion" if raw else "chat.completion.chunk"
    head = f'data: {{"id":"scripted-1","object":"{kind}","created":{CREATED},"model":{json.dumps(model)},"choices":'

    def frame(choices: str, completion: int, thought: int, usage: bool) -> bytes:
        told = f',"usage":{json.dumps(_usage(script, prompt, completion, thought))}' if usage else ""
        return f"{head}{choices}{told}}}\n\n".encode()

    def choice(delta: dict[str, Any], finish: str | None = None) -> str:
        if raw:
            said = {"index": 0, "text": delta.get("content") or delta.get("reasoning") or "", "finish_reason": finish}
        else:
            said = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return json.dumps([said], ensure_ascii=False)

    made = [] if raw else [frame(choice({"role": "assistant", "content": ""}), 0, 0, running)]
    thought = 0
    for i, delta in enumerate(script.deltas, 1):
        if script.bare_chunks and i % 3 == 1:
            made += [b'data: {"id":"scripted-1","object":"chat.completion.chunk"}\n\n', frame("[]", i - 1, thought, running)]
        thought += "reasoning" in delta or "reasoning_content" in delta
        made.append(frame(choice(delta), i, thought, running))
        if script.dies_after == i:
            return made
        if script.error_after == i:
            broken = {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": None, "code": 500}}
            return [*made, f"data: {json.dumps(broken)}\n\n".encode(), b"data: [DONE]\n\n"]
    if script.finish is not None:
        made.append(frame(choice({}, script.finish), len(script.deltas), thought, running))
    if asked:
        made.append(frame("[]", len(script.deltas), thought, True))
    made.append(b"data: [DONE]\n\n")
    return made


def recut(stream: list[bytes], size: int) -> list[bytes]:
    """The same bytes in pieces of `size`, wherever that cuts: inside a JSON string, inside a character."""
    whole = b"".join(stream)
    return [whole[i : i + size] for i in range(0, len(whole), size)]


def whole(script: Script, ask: Ask, model: str, *, raw: bool = False) -> dict[str, Any]:
    """The reply in one piece."""
    thought = sum("reasoning" in delta or "reasoning_content" in delta for delta in script.deltas)
    if raw:
        text = "".join(delta.get("content") or delta.get("reasoning") or "" for delta in script.deltas)
        choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": script.finish}
    else:
        choice = {"index": 0, "message": _message(script), "finish_reason": script.finish}
    reply = {"id": "scripted-1", "object": "text_completion" if raw else "chat.completion", "created": CREATED, "model": model}
    usage = {"usage": _usage(script, _prompt_count(ask), len(script.deltas), thought)} if script.usage else {}
    return reply | {"choices": [choice]} | usage


def _message(script: Script) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    for delta in script.deltas:
        for name in ("content", "reasoning", "reasoning_content"):
            if name in delta:
                message[name] = (message.get(name) or "") + delta[name]
        for part in delta.get("tool_calls", ()):
            known = calls.setdefault(part["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
            known["id"] += part.get("id", "")
            for name, text in part["function"].items():
                known["function"][name] += text
    return message | ({"tool_calls": list(calls.values())} if calls else {})


def _prompt_count(ask: Ask) -> int:
    if "prompt" in ask.body:
        return len(pieces(str(ask.body["prompt"])))
    return prompt_tokens(ask.body.get("messages") or [], ask.body.get("tools"))


def _usage(script: Script, prompt: int, completion: int, thought: int) -> dict[str, Any]:
    details = {"reasoning_tokens": thought} if script.counts_reasoning else None
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
        "completion_tokens_details": details,
    }


def rendered(messages: Iterable[Any], *, thinks: bool, closed: bool) -> str:
    """The prompt of a conversation as Kimi's template writes it, tools left out."""
    said = [message for message in messages if isinstance(message, dict)]
    turns = "".join(f"<|im_{message['role']}|>{message['role']}<|im_middle|>{message.get('content') or ''}<|im_end|>" for message in said)
    return f"{turns}<|im_assistant|>assistant<|im_middle|>" + ("<think>" if thinks else "<think></think>" if closed else "")


def tokenized(body: dict[str, Any], *, opens_thought: bool) -> dict[str, Any]:
    """The answer of /tokenize. Its token numbers are code points (so that /detokenize can spell them); its count is of pieces."""
    if "messages" in body:
        off = (body.get("chat_template_kwargs") or {}).get("thinking") is False
        text = rendered(body["messages"] or [], thinks=opens_thought and not off, closed=opens_thought and off)
        count = prompt_tokens(body["messages"] or [], body.get("tools"))
    else:
        text = str(body.get("prompt") or "")
        count = len(_marked(text))
    strings = _marked(text) if body.get("return_token_strs") else None
    return {"count": count, "tokens": list(map(ord, text)), "token_strs": strings}


_MARKS = re.compile(r"(<\|[a-z_]+\|>|</?think>)")


def _marked(text: str) -> list[str]:
    """Pieces of about a token, marks being one each."""
    return [piece for part in _MARKS.split(text) if part for piece in ([part] if _MARKS.fullmatch(part) else pieces(part))]
