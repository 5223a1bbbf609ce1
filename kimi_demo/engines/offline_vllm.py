"""The one place that touches `vllm.LLM`: load it, enter rows, step, abort, shut down. vllm is imported in `load`, not before.

Written for vLLM 0.32. Beside LLM's public methods it uses `llm_engine.add_request`, `step`, `abort_request` (the loop of LLM.generate
itself) and, marked below, three things that are vLLM's own business; tests/engines/test_offline.py runs all of them.
"""

import gc
import logging
import multiprocessing
import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

import psutil

from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.offline_rows import Entered, RowAsk, Standing, Written, now

log = logging.getLogger(__name__)

_SHUTDOWN_S = 5.0
"""What EngineCore gets to end by itself (its worker took 2 to 3 s); what is left then is killed."""

_KILLED_S = 5.0


def engine_processes() -> list[BaseProcess]:
    """The EngineCore processes that this process has started (through multiprocessing) and that live."""
    return [process for process in multiprocessing.active_children() if process.name.startswith("EngineCore")]


def kill_tree(pid: int) -> None:
    """Kills a process of ours and all that it started; returns when its descendants are gone."""
    try:
        process = psutil.Process(pid)
        tree = [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return
    _kill(tree)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    # Our own children are reaped by multiprocessing; waiting for them here would take their exit code away from it.
    mine = {child.pid for child in multiprocessing.active_children()}
    psutil.wait_procs([process for process in processes if process.pid not in mine], timeout=_KILLED_S)


def parse_arguments(text: str) -> dict[str, Any]:
    """vLLM's command line arguments in `text` as keyword arguments of `LLM`. Those that only the server knows are left out.

    Raises Failure("batch.bad_vllm_args", reason=…).
    """
    if not text.strip():
        return {}
    from vllm.engine.arg_utils import EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    def refuse(message: str) -> NoReturn:
        raise Failure("batch.bad_vllm_args", reason=message)

    make: Any = FlexibleArgumentParser
    parser: Any = EngineArgs.add_cli_args(make(add_help=False))
    parser.error = refuse  # argparse's own prints the usage and ends the process
    usual = vars(parser.parse_args([]))
    given = vars(parser.parse_known_args(shlex.split(text))[0])
    return {name: value for name, value in given.items() if name not in usual or value != usual[name]}


class LoadedModel:
    """A model in memory. Everything but `wake` belongs to the thread that called `load`."""

    def __init__(self, llm: Any, processes: list[BaseProcess]) -> None:
        from vllm import SamplingParams
        from vllm.renderers import ChatParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
        from vllm.v1.engine import EngineCoreOutputs
        from vllm.v1.engine.exceptions import EngineDeadError

        self.llm = llm
        self._engine = llm.llm_engine
        self._outputs = llm.llm_engine.engine_core.outputs_queue
        self._processes = processes
        self._params = SamplingParams
        self._structured = StructuredOutputsParams
        self._chat_params = ChatParams
        self._final_only = RequestOutputKind.FINAL_ONLY
        self._nothing = EngineCoreOutputs
        self._dead = EngineDeadError
        self.max_model_len: int = llm.model_config.max_model_len
        # Twice what computes at once: the engine always finds the next rows waiting, and no more of them are held in memory.
        self.max_rows_in_engine: int = 2 * llm.llm_engine.vllm_config.scheduler_config.max_num_seqs
        # How LLM.chat tokenizes, but without the limit: a prompt that is too long is to be counted, not refused unseen.
        self._tokenizing = replace(llm.renderer.default_chat_tok_params.with_kwargs(add_special_tokens=False), max_total_tokens=None)

    @classmethod
    def load(cls, arguments: Mapping[str, Any]) -> "LoadedModel":
        """Raises whatever vLLM raises; no process is left then."""
        from vllm import LLM

        before = {process.pid for process in engine_processes()}
        llm = LLM(**arguments)
        return cls(llm, [process for process in engine_processes() if process.pid not in before])

    @property
    def pids(self) -> list[int]:
        """The EngineCore processes; their workers are their children."""
        return [process.pid for process in self._processes if process.pid is not None]

    def enter(self, index: int, ask: RowAsk, request_id: str) -> Entered:
        """Row `index` goes into the engine. Raises Failure: batch.prompt_too_long, batch.row_rejected."""
        try:
            prompt = self._render(list(ask.messages), thinking=ask.thinking)
            tokens = len(prompt["prompt_token_ids"])
            room = self.max_model_len - tokens
            if room < 1:
                raise Failure("batch.prompt_too_long", tokens=tokens, limit=self.max_model_len)
            params = self._sampling(ask.sampling, min(ask.sampling.max_tokens, room))
            internal_id = self._engine.add_request(request_id, prompt, params)
        except (Failure, self._dead):
            raise
        except Exception as error:  # of vLLM's validation, of the template or of the tokenizer: the other rows have no part in it
            raise Failure("batch.row_rejected", reason=" ".join(str(error).split())[:300]) from error
        return Entered(index, tokens, now(), internal_id, prompt.get("prompt"))

    def _render(self, messages: list[dict[str, Any]], *, thinking: bool) -> Any:
        """The prompt's token ids, from the same template in the same way as LLM.chat's."""
        chat = self._chat_params(
            chat_template=self.llm.chat_template,
            chat_template_content_format="auto",
            chat_template_kwargs={
                "thinking": thinking,
                "add_generation_prompt": True,
                "continue_final_message": False,
                "tools": None,
                "tokenize": False,
            },
        )
        _, (prompt,) = self.llm.renderer.render_chat([messages], chat, self._tokenizing)
        return prompt

    def _sampling(self, sampling: Sampling, max_tokens: int) -> Any:
        """No stop token ids: vLLM takes them from the model. Only the final output is asked for, so a step costs nothing per row."""
        structured = None if sampling.json_schema is None else self._structured(json=sampling.json_schema)
        return self._params(
            **sampling.openai_fields() | sampling.vllm_fields() | {"max_tokens": max_tokens},
            structured_outputs=structured,
            output_kind=self._final_only,
            skip_clone=True,  # made for this one request
        )

    def step(self) -> list[tuple[str, Written]]:
        """Waits for the engine's next step (or `wake`) and returns the rows that it finished. Raises Failure("batch.engine_died")."""
        try:
            outputs = self._engine.step()
        except self._dead as error:
            raise Failure("batch.engine_died") from error
        return [
            (output.request_id, Written(output.outputs[0].text, len(output.outputs[0].token_ids), output.outputs[0].finish_reason))
            for output in outputs
            if output.finished
        ]

    def abort(self, request_ids: list[str]) -> None:
        self._engine.abort_request(request_ids)

    def standing(self, entered: Mapping[str, Entered]) -> Standing:
        """Counts of the tokens as they stand, from the output processor's own state of each request (vLLM's business, one)."""
        states = self._engine.output_processor.request_states
        running = tokens = 0
        for row in entered.values():
            state = states.get(row.internal_id)
            if state is not None and not state.is_prefilling:
                running += 1
                tokens += state.detokenizer.num_output_tokens()
        return Standing(running, tokens)

    def wake(self) -> None:
        """Makes a `step` that is waiting return, by an empty output in its queue (two). From any thread."""
        self._outputs.put_nowait(self._nothing())

    def watch(self, on_death: Callable[[int | None], None]) -> None:
        """Calls on_death(exit code) from another thread when EngineCore ends.

        One that is killed says nothing, and vLLM 0.32 would then wait for its next output for ever: so `step` is told as well (three).
        """
        outputs, dead, processes = self._outputs, self._dead, self._processes

        def wait() -> None:
            connection.wait([process.sentinel for process in processes])
            codes = [process.exitcode for process in processes if process.exitcode is not None]
            outputs.put_nowait(dead())
            on_death(codes[0] if codes else None)

        if processes:
            threading.Thread(target=wait, name="batch-engine-watch", daemon=True).start()

    def shut_down(self) -> None:
        """Ends vLLM's processes and frees its objects; returns when the processes are gone."""
        tree: list[psutil.Process] = []
        for pid in self.pids:
            try:
                tree += psutil.Process(pid).children(recursive=True)
            except psutil.NoSuchProcess:
                pass
        try:
            self._engine.engine_core.shutdown(timeout=_SHUTDOWN_S)
        except Exception:  # it may be half dead already; what is left of it is killed below
            log.exception("vLLM did not shut down by itself")
        for process in self._processes:
            if process.is_alive():
                process.kill()
            process.join(_KILLED_S)
        _, left = psutil.wait_procs(tree, timeout=_SHUTDOWN_S)
        _kill(left)
        self.llm = self._engine = None
        gc.collect()
