"""Results in the formats that people take them out in; each a stream of text made from a stream of results. Pure."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kimi_demo.batches.results import Result

OutFormat = Literal["jsonl", "csv", "tsv", "openai", "raw"]
ENDINGS: dict[OutFormat, str] = {"jsonl": ".jsonl", "csv": ".csv", "tsv": ".tsv", "openai": ".openai.jsonl", "raw": ".txt"}
"""What a file of each format is called, after the results' name."""

LONGEST_CELL = 32_767
"""Characters that Excel takes in one cell; of a longer one it spills the rest over the next rows."""

_COLUMNS = (
    "prompt",
    "reasoning",
    "answer",
    "finish_reason",
    "error",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "seconds",
    "thinking",
    "model",
    "line",
)

_CUT = " […]"
# Full-width ones too: East Asian versions of Excel take them for the same.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")

Sentence = Callable[[str, dict[str, str]], str]
"""A failure's code and parameters in words."""


def beside(results: Path, form: OutFormat) -> Path:
    """Where the results of the journal `results` go as `form`."""
    return results.with_suffix(ENDINGS[form])


def written(results: Iterable[Result], form: OutFormat, columns: Sequence[str], sentence: Sentence) -> Iterator[str]:
    """The results as `form`, piece by piece. columns: those that travelled along, in their order. Each piece ends with a line."""
    match form:
        case "jsonl":
            return (result.to_line().decode() for result in results)
        case "csv":
            return _table(results, columns, sentence, ",")
        case "tsv":
            return _table(results, columns, sentence, "\t")
        case "openai":
            return (json.dumps(_openai(result, sentence)) + "\n" for result in results)
        case "raw":
            return (_raw(result, sentence) for result in results)


def _table(results: Iterable[Result], columns: Sequence[str], sentence: Sentence, delimiter: str) -> Iterator[str]:
    """Opens right in Excel: a byte order mark, or it would take Chinese for the local code page; nothing in it is a formula."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n")

    def line(cells: Iterable[Any]) -> str:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([cell(value) for value in cells])
        return buffer.getvalue()

    yield "\ufeff" + line([*(f"{name} (input)" if name in _COLUMNS else name for name in columns), *_COLUMNS])
    for result in results:
        own = {name: getattr(result, name) for name in _COLUMNS}
        own["error"] = None if result.error is None else sentence(result.error, result.error_params)
        yield line([*(result.columns.get(name) for name in columns), *own.values()])


def cell(value: Any) -> str:
    """A value as a spreadsheet's cell: text that begins like a formula gets an apostrophe before it, and is shown, not executed."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A carriage return inside a cell would be a line end to some programs.
    text = _CONTROL.sub("", text).encode("utf-8", "replace").decode()
    dangerous = text.lstrip(" ").startswith(_FORMULA)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if dangerous:
        text = "'" + text
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - len(_CUT)] + _CUT


def _openai(result: Result, sentence: Sentence) -> dict[str, Any]:
    """A line of OpenAI's batch output, as `vllm run-batch` writes it."""
    name = f"{result.run}-{result.index}"
    line = {"id": f"batch_req_{name}", "custom_id": result.custom_id if result.custom_id is not None else f"line-{result.line}"}
    if result.error is not None:
        refused = {"error": {"message": sentence(result.error, result.error_params), "type": result.error, "code": 400}}
        return line | {"response": {"status_code": 400, "request_id": name, "body": refused}, "error": None}
    message: dict[str, Any] = {"role": "assistant", "content": result.answer}
    if result.reasoning is not None:
        message["reasoning"] = result.reasoning
    usage: dict[str, Any] = {
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.completion_tokens,
        "total_tokens": result.prompt_tokens + result.completion_tokens,
    }
    if result.reasoning_tokens is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": result.reasoning_tokens}
    body = {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": _seconds(result.finished_at),
        "model": result.model,
        "choices": [{"index": 0, "message": message, "finish_reason": result.finish_reason, "logprobs": None}],
        "usage": usage,
    }
    return line | {"response": {"status_code": 200, "request_id": name, "body": body}, "error": None}


def _seconds(moment: str) -> int:
    try:
        return int(datetime.fromisoformat(moment).timestamp())
    except ValueError:
        return 0


def _raw(result: Result, sentence: Sentence) -> str:
    """As the deployment guide's script prints a row: the rendered prompt, and the whole text with `</think>` in it."""
    prompt = result.rendered_prompt if result.rendered_prompt is not None else result.prompt
    if result.error is not None:
        return f"Prompt: {prompt!r}, Error: {sentence(result.error, result.error_params)}\n"
    closed = "" if result.cut_off_in_thought else "</think>"
    text = result.answer if result.reasoning is None else f"{result.reasoning}{closed}{result.answer}"
    return f"Prompt: {prompt!r}, Response: {text!r}\n"
