"""What a round sent and received: as JSON, as curl, as Python with the openai package. Pure; the API key is in none of it."""

import json
import shlex
from collections.abc import Callable
from html import escape
from typing import Any, Literal, get_args

from kimi_demo.dialect.images import image_ids, replaced
from kimi_demo.dialect.reply import Reply
from kimi_demo.ui.texts import Texts

Form = Literal["sent", "curl", "python", "received"]
FORMS: tuple[Form, ...] = get_args(Form)
KEY_VARIABLE = "KIMI_DEMO_API_KEY"

# What openai's `create` takes by name; anything else goes into extra_body.
_OPENAI_NAMES = frozenset(
    "model messages prompt temperature top_p max_tokens seed stop presence_penalty frequency_penalty "
    "tools tool_choice response_format stream stream_options".split()
)


def request_text(form: Form, reply: Reply, address: str, url_of: Callable[[str], str]) -> str:
    """The round in one form. address: the server's base URL, with /v1; url_of: what stands in place of an image, by its id."""
    sent: dict[str, Any] = replaced(reply.request, url_of)
    match form:
        case "sent":
            return as_json(sent)
        case "curl":
            return as_curl(sent, address)
        case "python":
            return as_python(sent, address)
        case "received":
            return as_json(received(reply))


def as_json(value: Any) -> str:
    """Half a surrogate pair, which UTF-8 cannot hold, makes all of it ASCII."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if text.isascii() or _encodes(text) else json.dumps(value, indent=2)


def as_curl(body: dict[str, Any], address: str) -> str:
    """The body as a here-document: it has no limit of size, and nothing in it is expanded. No line of JSON can be the end mark."""
    return (
        f"curl -sS -N {shlex.quote(address.rstrip('/') + _route(body))} \\\n"
        f"  -H 'Content-Type: application/json' \\\n"
        f'  -H "Authorization: Bearer ${KEY_VARIABLE}" \\\n'
        f"  --data-binary @- <<'JSON'\n{as_json(body)}\nJSON\n"
    )


def as_python(body: dict[str, Any], address: str) -> str:
    chat = "prompt" not in body
    known = {name: value for name, value in body.items() if name in _OPENAI_NAMES}
    extra = {name: value for name, value in body.items() if name not in _OPENAI_NAMES}
    arguments = [f"    {name}={_literal(value, 1)}," for name, value in (known | ({"extra_body": extra} if extra else {})).items()]
    lines = [
        "import os",
        "",
        "from openai import OpenAI",
        "",
        f'client = OpenAI(base_url={_literal(address, 0)}, api_key=os.environ.get("{KEY_VARIABLE}") or "none")',
        "",
        f"reply = client.{'chat.completions' if chat else 'completions'}.create(",
        *arguments,
        ")",
    ]
    if not body.get("stream"):
        lines.append("print(reply.model_dump_json(indent=2))")
    elif chat:
        lines += [
            "for chunk in reply:",
            "    for choice in chunk.choices:",
            "        delta = choice.delta",
            '        thought = getattr(delta, "reasoning", None) or getattr(delta, "reasoning_content", None)',
            '        print(thought or delta.content or "", end="", flush=True)',
            "        for call in delta.tool_calls or []:",
            '            print(call.function.name or "", call.function.arguments or "", end="", flush=True)',
            "print()",
        ]
    else:
        lines += ["for chunk in reply:", '    print("".join(choice.text for choice in chunk.choices), end="", flush=True)', "print()"]
    return "\n".join(lines) + "\n"


def received(reply: Reply) -> dict[str, Any]:
    """What came of it, put together as the server would have sent it in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.answer or None}
    if reply.thought:
        message["reasoning"] = reply.thought
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls
        ]
    found: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}]}
    if reply.usage is not None:
        usage: dict[str, Any] = {"prompt_tokens": reply.usage.prompt_tokens, "completion_tokens": reply.usage.completion_tokens}
        if reply.usage.reasoning_tokens is not None:
            usage["completion_tokens_details"] = {"reasoning_tokens": reply.usage.reasoning_tokens}
        if reply.usage.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": reply.usage.cached_tokens}
        found["usage"] = usage
    return found


def request_html(reply: Reply, address: str, where: str, size_of: Callable[[str], str], texts: Texts) -> str:
    """All forms, one open at a time. where: the address of this view, below which each form is found in full;
    size_of: what is shown in place of an image."""
    if not reply.request:
        return f'<p class="fine">{escape(texts.say("request.none"))}</p>'
    note = f'<p class="fine">{escape(texts.say("request.key_note", variable=KEY_VARIABLE))}</p>'
    has_images = bool(image_ids(reply.request))
    parts = []
    for form in FORMS:
        text = escape(request_text(form, reply, address, size_of))
        # With images, what is shown is shortened; what is copied is not.
        source = f' data-copy-from="{escape(where)}/{form}"' if has_images and form != "received" else " data-copy"
        parts.append(
            f'<details name="{escape(where)}"{" open" if form == "sent" else ""}><summary>{escape(texts.say(f"request.{form}"))}</summary>'
            f'<div class="code"><pre tabindex="0">{text}</pre>'
            f'<button type="button" class="copy" aria-label="{escape(texts.say("page.copy"))}"{source}></button></div></details>'
        )
    return f'<div class="forms">{"".join(parts)}</div>{note}'


def closed_html(key: str, texts: Texts) -> str:
    """The closed box under the round with element ids that begin with `key` (run-ID-INDEX); assets/request.js loads what is in it.

    Viewers of a public page get none: what was sent names the model's folder, and where it was sent the server.
    """
    if texts.discreet:
        return ""
    run_id, _, index = key.removeprefix("run-").rpartition("-")
    failed, title, loading = (escape(texts.say(f"request.{name}")) for name in ("failed", "title", "loading"))
    return (
        f'<details class="request" id="{key}-request" data-load="kimi/request/{run_id}/{index}" data-failed="{failed}">'
        f'<summary>{title}</summary><div class="loaded">{loading}</div></details>'
    )


def _route(body: dict[str, Any]) -> str:
    return "/completions" if "prompt" in body else "/chat/completions"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _literal(value: Any, depth: int) -> str:
    """`value` (JSON) as a Python literal, broken into lines like the code around it."""
    inner, outer = "    " * (depth + 1), "    " * depth
    if isinstance(value, dict) and value:
        return "{\n" + "".join(f"{inner}{_literal(name, 0)}: {_literal(each, depth + 1)},\n" for name, each in value.items()) + outer + "}"
    if isinstance(value, list | tuple) and value:
        return "[\n" + "".join(f"{inner}{_literal(each, depth + 1)},\n" for each in value) + outer + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=not _encodes(value)) if value.isprintable() and _encodes(value) else repr(value)
    return repr(value)
