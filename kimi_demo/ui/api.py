"""The named API endpoints /chat, /tools and /batch: one stateless call each, which returns once and waits while an engine loads."""

from typing import Any

import gradio as gr
from gradio.events import api as register

from kimi_demo.dialect.events import Failed, RowFinished
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.reply import rounds
from kimi_demo.dialect.sampling import DEFAULT_PRESET
from kimi_demo.runs.run import Run
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.summary import summary
from kimi_demo.ui.parameters import sampling
from kimi_demo.ui.services import Services, ToolUse


def build(services: Services, *, batches: bool = True) -> None:
    """Adds the endpoints to the Blocks that are being built. Types and docstrings are what Gradio's API page shows."""

    async def chat(
        message: str,
        request: gr.Request,
        thinking: bool = True,
        max_tokens: int = 4096,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """One reply: {reasoning, answer, finish_reason, usage}. usage counts tokens: prompt, completion and, of it, reasoning."""
        with _told(services):
            _switch("thinking", thinking)
            owner = services.access.owner_of(request)
            chosen = sampling(DEFAULT_PRESET, max_tokens=max_tokens, temperature=temperature, seed=seed)
            chosen = services.within(owner, chosen, DEFAULT_PRESET)
            run = services.start_alone(owner, _text("message", message), chosen, thinking=thinking, kind="chat_api")
            await _finished(run)
        reply = rounds(run.entries)[-1]
        usage = reply.usage
        return {
            "reasoning": reply.thought,
            "answer": reply.answer,
            "finish_reason": reply.finish_reason,
            "usage": {
                "prompt_tokens": usage.prompt_tokens if usage else None,
                "completion_tokens": usage.completion_tokens if usage else None,
                "reasoning_tokens": usage.reasoning_tokens if usage else None,
            },
        }

    async def tools(question: str, request: gr.Request, temperature: float | None = None, seed: int | None = None) -> dict[str, Any]:
        """A tool conversation: {rounds: [{reasoning, calls: [{id, name, arguments, result, error}]}], answer}."""
        with _told(services):
            owner, use = services.access.owner_of(request), ToolUse(tuple(tool.name for tool in GUIDE_TOOLS))
            chosen = services.within(owner, sampling("tools", temperature=temperature, seed=seed), "tools")
            run = services.start_tools(owner, None, _text("question", question), chosen, kind="tools_api", use=use)
            await _finished(run)
        return summary(run.entries)

    async def batch(
        prompts: list[str],
        request: gr.Request,
        thinking: bool = True,
        max_tokens: int = 4096,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> list[dict[str, Any]]:
        """Every prompt through the model, in the order given: [{prompt, reasoning, answer, finish_reason, tokens}]."""
        with _told(services):
            _switch("thinking", thinking)
            chosen = sampling(DEFAULT_PRESET, max_tokens=max_tokens, temperature=temperature, seed=seed)
            if not isinstance(prompts, list) or not all(isinstance(prompt, str) and prompt.strip() for prompt in prompts):
                raise Failure("batch.not_prompts")
            run = services.start_batch(services.access.owner_of(request), None, prompts, chosen, thinking=thinking, kind="batch_api")
            await _finished(run)
        rows = sorted((item.event for item in run.entries if isinstance(item.event, RowFinished)), key=lambda row: row.index)
        return [_row(services, row) for row in rows]

    for function in (chat, tools, batch) if batches else (chat, tools):
        register(function, api_name=function.__name__, concurrency_limit=None, concurrency_id=f"api-{function.__name__}")


class _told:
    """Failures inside become gr.Error with the sentences a person understands."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Failure):
            raise gr.Error(self._services.texts.sentence(error), print_exception=False) from None


async def _finished(run: Run) -> None:
    """Waits for the run's end; a caller who goes away stops it. Raises the Failure it ended with."""
    try:
        await run.wait()
    finally:
        run.cancel()
    for item in run.entries:
        if isinstance(item.event, Failed):
            raise Failure(item.event.code, **item.event.params)
    if run.state == "stopped":
        raise Failure("runs.stopped")


def _switch(field: str, value: object) -> None:
    """ "no" and "false" are true as Python sees them, which nobody means."""
    if not isinstance(value, bool):
        raise Failure("parameters.field", field=field, value=value, problem="true or false is needed")


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise Failure("parameters.field", field=field, value=type(value).__name__, problem="a string is needed")
    return value


def _row(services: Services, row: RowFinished) -> dict[str, Any]:
    error = None if row.error is None else " ".join(services.texts.failure(row.error, row.error_params))
    return {
        "prompt": row.prompt,
        "reasoning": row.reasoning,
        "answer": row.answer,
        "finish_reason": row.finish_reason if error is None else "error",
        "tokens": row.completion_tokens,
        **({"error": error} if error else {}),
    }
