"""The thread that owns the batch engine: the model is loaded, used and freed here and nowhere else."""

import itertools
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.offline_commands import Abort, Call, Change, Command, Died, Load, Quit, Start, Unload
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.offline_loading import Watcher, load_model
from kimi_demo.engines.offline_log import read_log, root_cause
from kimi_demo.engines.offline_rows import Job, now
from kimi_demo.engines.offline_vllm import LoadedModel

log = logging.getLogger(__name__)

_FEEDING_S = 0.05
"""Longest that new rows are prepared while finished ones may be waiting to be told."""


class EngineThread:
    """Takes commands from any thread and carries them out one after the other, between the engine's steps.

    failure: why there is no model, after a load that failed or an engine that died.
    """

    def __init__(self, guardian: Watcher | None = None) -> None:
        self.failure: Failure | None = None
        self._guardian = guardian
        self._model: LoadedModel | None = None
        self._log_lines: Callable[[], list[str]] = list
        self._jobs: list[Job] = []
        self._owners: dict[str, Job] = {}
        self._ids = itertools.count()
        self._abandoned = threading.Event()
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def loaded(self) -> bool:
        return self._model is not None

    @property
    def room(self) -> int:
        """How many rows the engine takes in at once; 0 without a model."""
        model = self._model
        return 0 if model is None else model.max_rows_in_engine

    # From any thread.

    def load(self, launch: OfflineLaunch, on_phase: Callable[[Phase], None]) -> "Future[None]":
        """Resolved when the model is there; a Failure otherwise. on_phase is called from threads of the engine's."""
        self._abandoned.clear()
        command = Load(launch, on_phase)
        self._post(command)
        return command.done

    def abandon_load(self) -> None:
        """The load that is going on ends as soon as it can, with Failure("batch.load_stopped")."""
        self._abandoned.set()

    def unload(self) -> "Future[None]":
        """Resolved when the memory is free. Batches that were going end with Failure("batch.unloaded")."""
        command = Unload()
        self._post(command)
        return command.done

    def start(self, job: Job) -> None:
        self._post(Start(job))

    def abort(self, job: Job) -> None:
        """Takes the job's rows out of the engine and then resolves it; nothing happens when it is over."""
        self._post(Abort(job))

    def change(self, job: Job, change: Callable[[Callable[[list[str]], None]], None]) -> None:
        """Lets rows come to the job, or leave it; nothing happens when it is over."""
        self._post(Change(job, change))

    def call(self, work: Callable[[Any], Any]) -> "Future[Any]":
        """work(llm) on this thread, while no batch advances."""
        command = Call(work)
        self._post(command)
        return command.done

    def close(self, timeout: float) -> None:
        """Frees everything and ends the thread; waits for that, `timeout` seconds at most."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self._abandoned.set()
            self._post(Quit())
            thread.join(timeout)

    def _post(self, command: Command) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="batch-engine", daemon=True)
            self._thread.start()
        self._commands.put(command)
        model = self._model
        if model is not None:
            model.wake()

    # On the thread.

    def _run(self) -> None:
        while True:
            for command in self._waiting_commands():
                if isinstance(command, Quit):
                    self._free(Failure("batch.unloaded"))
                    return
                self._handle(command)
            if self._is_busy:
                try:
                    self._advance()
                except Exception as error:
                    self._broken(error)

    @property
    def _is_busy(self) -> bool:
        """Whether there is anything to do before the next command: a job may be open and have no rows at the moment."""
        return bool(self._owners) or any(job.has_rows_left or job.is_over for job in self._jobs)

    def _waiting_commands(self) -> list[Command]:
        """Those that have come; waits for one when there is nothing else to do."""
        commands = [] if self._is_busy else [self._commands.get()]
        try:
            while True:
                commands.append(self._commands.get_nowait())
        except queue.Empty:
            return commands

    def _handle(self, command: Command) -> None:
        match command:
            case Load():
                _resolve(command.done, lambda: self._load(command))
            case Unload():
                _resolve(command.done, lambda: self._free(Failure("batch.unloaded")))
            case Start(job=job):
                self._begin(job)
            case Abort(job=job):
                self._withdraw(job)
            case Change(job=job, change=change):
                if job in self._jobs:
                    change(self._take_out)
            case Call():
                _resolve(command.done, lambda: self._call(command.work))
            case Died(model=model, exit_code=code) if model is self._model:
                self._broken(Failure("batch.engine_died"), code)
            case _:
                pass

    def _load(self, command: Load) -> None:
        if self._model is not None:
            return
        launch = command.launch
        self.failure = None
        self._log_lines = lambda: read_log(launch.log)
        try:
            model = load_model(launch, command.on_phase, self._guardian, self._abandoned)
        except Failure as failure:
            self.failure = Failure(failure.code, **failure.params)  # a copy: the raised one holds on to the frames it came through
            raise
        self._model = model
        model.watch(lambda code: self._commands.put(Died(model, code)))

    def _call(self, work: Callable[[Any], Any]) -> Any:
        if self._model is None:
            raise self.failure or Failure("batch.not_loaded")
        return work(self._model.llm)

    def _begin(self, job: Job) -> None:
        if self._model is None:
            job.end(self.failure or Failure("batch.not_loaded"))
            return
        job.start()
        self._jobs.append(job)

    def _withdraw(self, job: Job) -> None:
        if job in self._jobs:
            self._jobs.remove(job)
            self._take_out(list(job.entered))
        job.end()

    def _take_out(self, ids: list[str]) -> None:
        for request_id in ids:
            self._owners.pop(request_id, None)
        if self._model is not None and ids:
            self._model.abort(ids)

    def _advance(self) -> None:
        model = self._model
        assert model is not None, "jobs are ended before their model goes"
        self._feed(model)
        if self._owners:
            for request_id, written in model.step():
                owner = self._owners.pop(request_id, None)
                if owner is not None:  # None: it was withdrawn meanwhile
                    owner.finish(request_id, written, now())
        for job in list(self._jobs):
            job.report(model.standing, now())
            if job.is_over:
                self._jobs.remove(job)
                job.end()

    def _feed(self, model: LoadedModel) -> None:
        """Lets rows enter, one of each job in turn, until the engine has enough of them."""
        until = now() + _FEEDING_S
        hungry = [job for job in self._jobs if job.has_rows_left]
        while hungry and len(self._owners) < model.max_rows_in_engine:
            for job in hungry:
                index = job.take()
                request_id = f"row-{next(self._ids)}"
                try:
                    job.entered[request_id] = model.enter(index, job.ask(index), request_id)
                    self._owners[request_id] = job
                except Failure as failure:
                    job.reject(index, failure)
            if now() > until:
                return
            hungry = [job for job in hungry if job.has_rows_left]

    def _broken(self, error: Exception, exit_code: int | None = None) -> None:
        """The engine cannot go on: everyone who waits is told, and what is left of it goes."""
        reason = root_cause(self._log_lines()) or (f"exit code {exit_code}" if exit_code is not None else f"{error}")
        failure = Failure("batch.engine_died", reason=reason)
        log.error("The batch engine died: %s", reason, exc_info=None if isinstance(error, Failure) else error)
        self.failure = failure
        self._free(failure)

    def _free(self, told: Failure) -> None:
        """Ends the jobs with `told` and takes the model out of memory."""
        jobs, self._jobs = self._jobs, []
        self._owners.clear()
        for job in jobs:
            job.end(told)
        model, self._model = self._model, None
        if model is not None:
            model.shut_down()
            if self._guardian is not None:
                for pid in model.pids:
                    self._guardian.forget(pid)


def _resolve(future: "Future[Any]", work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
