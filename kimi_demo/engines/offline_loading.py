"""Loading the batch engine's model: checks first, phases while it lasts, and nothing left behind when it fails."""

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import free_host_memory, gpus
from kimi_demo.engines.availability import require_vllm
from kimi_demo.engines.offline_checks import check, explain
from kimi_demo.engines.offline_launch import OfflineLaunch, environment, llm_arguments, set_environment
from kimi_demo.engines.offline_log import LogFollower, prepare_log, read_log
from kimi_demo.engines.offline_vllm import LoadedModel, engine_processes, kill_tree, parse_arguments
from kimi_demo.engines.phases import Progress, phase_of

log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Ends the processes it was told of when the application is gone (`guardian.Guardian`)."""

    def watch(self, pid: int) -> None: ...

    def forget(self, pid: int) -> None: ...


def load_model(
    launch: OfflineLaunch, on_phase: Callable[[Phase], None], guardian: Watcher | None, abandoned: threading.Event
) -> LoadedModel:
    """The model in memory, ready to generate. on_phase is called from this thread and from one that reads vLLM's log.

    abandoned: once set, the load ends soon. Raises the failures of `OfflineEngine.load`; no process is left then.
    """
    try:
        on_phase(Phase("batch.checking"))
        build = require_vllm()
        check(launch, on_cpu=build.on_cpu, free_memory=free_host_memory(), gpus=[] if build.on_cpu else gpus())
        with set_environment(environment(launch, on_cpu=build.on_cpu, cores=sorted(os.sched_getaffinity(0)))):
            configuration = prepare_log(launch.log)
            on_phase(Phase("batch.importing"))
            arguments = llm_arguments(launch, on_cpu=build.on_cpu, log_config=configuration) | parse_arguments(launch.vllm_args)
            newcomers = _Newcomers(guardian, abandoned)
            with LogFollower(launch.log, _teller(on_phase), newcomers):
                return _make(arguments, newcomers, abandoned)
    except BaseException as error:  # on this thread nothing else would take a SystemExit
        failure = Failure("batch.load_stopped") if abandoned.is_set() else explain(error, read_log(launch.log))
        if not isinstance(error, Failure) and not abandoned.is_set():
            log.warning("The batch engine did not load: %s", failure, exc_info=error)
    # Outside the handler: as its context, the error would keep everything that vLLM had built so far in memory.
    raise failure


def _make(arguments: dict[str, Any], newcomers: "_Newcomers", abandoned: threading.Event) -> LoadedModel:
    try:
        if abandoned.is_set():
            raise Failure("batch.load_stopped")
        model = LoadedModel.load(arguments)
    except BaseException:
        newcomers.kill()
        raise
    if abandoned.is_set():
        model.shut_down()
        raise Failure("batch.load_stopped")
    return model


class _Newcomers:
    """Called while a model loads: tells the guardian of engine processes as they appear, kills them once the load is abandoned."""

    def __init__(self, guardian: Watcher | None, abandoned: threading.Event) -> None:
        self._guardian = guardian
        self._abandoned = abandoned
        self._known = {process.pid for process in engine_processes()}
        self._mine: set[int] = set()

    def __call__(self) -> None:
        for process in engine_processes():
            if process.pid is not None and process.pid not in self._known:
                self._known.add(process.pid)
                self._mine.add(process.pid)
                if self._guardian is not None:
                    self._guardian.watch(process.pid)
        if self._abandoned.is_set():
            self.kill()

    def kill(self) -> None:
        while self._mine:
            pid = self._mine.pop()
            kill_tree(pid)
            if self._guardian is not None:
                self._guardian.forget(pid)


def _teller(on_phase: Callable[[Phase], None]) -> Callable[[str], None]:
    """Turns log lines into phases that only go forward."""
    progress = Progress()

    def tell(line: str) -> None:
        phase = phase_of(line)
        if phase is not None and progress.step(phase):
            on_phase(phase)

    return tell
