"""Answers from transformers on a GPU, hundreds at once: a look during development. The published figures come from vLLM (served.py)."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kimi_demo.engines.rehearsal.evaluation.run import Request
from kimi_demo.engines.rehearsal.evaluation.scoring import ModelCall, Reply
from kimi_demo.engines.rehearsal.tokenizer import ARGUMENTS, CALL, CALL_END, SECTION, SECTION_END, THINK_END, TURN_END

BATCH = 1300


class QuickSpeaker:
    """A built model folder, greedy, with a small parser of its own."""

    def __init__(self, model: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer: Any = AutoTokenizer.from_pretrained(model, padding_side="left")
        loaded: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16)
        self._model = loaded.to(device).eval()

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        prompts = [self._prompt(request) for request in requests]
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        texts: dict[int, str] = {}
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            texts.update(zip(chosen, self._generate([prompts[index] for index in chosen]), strict=True))
        return [parse(texts[index], request.thinking) for index, request in enumerate(requests)]

    def _prompt(self, request: Request) -> str:
        tools = list(request.tools) or None
        return str(
            self._tokenizer.apply_chat_template(
                list(request.messages), tools=tools, thinking=request.thinking, tokenize=False, add_generation_prompt=True
            )
        )

    def _generate(self, prompts: list[str]) -> list[str]:
        import torch

        inputs = self._tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False).to(self._model.device)
        with torch.no_grad():
            made = self._model.generate(**inputs, max_new_tokens=400, do_sample=False)
        texts: list[str] = self._tokenizer.batch_decode(made[:, inputs.input_ids.shape[1] :], skip_special_tokens=False)
        return texts


def parse(text: str, thinking: bool) -> Reply:
    """The model's text as vLLM's parser would split it, for well-behaved text."""
    body, ended, _ = text.partition(TURN_END)
    reasoning, content = "", body
    if thinking:
        reasoning, closed, content = body.partition(THINK_END)
        ended = ended if closed else ""
    content, _, section = content.partition(SECTION)
    pattern = rf"{re.escape(CALL)}(.*?){re.escape(ARGUMENTS)}(.*?){re.escape(CALL_END)}"
    found = re.findall(pattern, section.replace(SECTION_END, ""), re.DOTALL)
    calls = tuple(ModelCall(call_id, call_id.rsplit(":", 1)[0].removeprefix("functions."), arguments) for call_id, arguments in found)
    return Reply(reasoning, content, calls, ("tool_calls" if calls else "stop") if ended else "length")
