"""What vLLM's processes write while the batch engine loads: into a file, and from there line by line to whoever listens.

vLLM hands its processes a logging configuration (`log_config_file`), which each applies as the first thing it does. Ours names the
handler below, which in a process of vLLM's also turns standard output and error over to the file: progress bars, tracebacks and the
last words of native code land there too, while the application's own output stays as it is.
"""

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

_PREFIX = re.compile(r"^\([^()]*\) [A-Z]+ [^\[\]]*\[[^\[\]]*\] ?")
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?$")
_SEQUEL = "See root cause above"
_POLL_S = 0.2


class EngineLogHandler(logging.StreamHandler[TextIO]):
    """Writes log records to the file `path`; in every process but `app_pid`, standard output and error go there as well."""

    def __init__(self, path: str, app_pid: int) -> None:
        file = open(path, "a", encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115  (open as long as the process lives)
        if os.getpid() != app_pid:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        super().__init__(file)


def prepare_log(log: Path) -> Path:
    """Empties `log` and writes the logging configuration beside it; returns the configuration's path. Raises OSError."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    configuration = log.with_suffix(".json")
    configuration.write_text(json.dumps(log_configuration(log, os.getpid())), encoding="utf-8")
    return configuration


def log_configuration(log: Path, app_pid: int) -> dict[str, object]:
    """vLLM's own logging configuration (logger.py, DEFAULT_LOGGING_CONFIG) with our handler in place of its stream."""
    handler = f"{EngineLogHandler.__module__}.{EngineLogHandler.__qualname__}"
    line = "(%(vllm_process_name)s pid=%(process)d) %(levelname)s %(asctime)s [%(fileinfo)s:%(lineno)d] %(message)s"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"vllm": {"()": "vllm.logging_utils.NewLineFormatter", "datefmt": "%m-%d %H:%M:%S", "format": line}},
        "handlers": {"engine": {"()": handler, "path": str(log), "app_pid": app_pid, "formatter": "vllm"}},
        "loggers": {"vllm": {"handlers": ["engine"], "level": "INFO", "propagate": False}},
    }


class LogFollower:
    """Reads a growing file on a thread of its own. on_line gets each line (a carriage return ends one too: progress bars);
    on_look is called before each look at the file, some five times a second. Both run on that thread."""

    def __init__(self, log: Path, on_line: Callable[[str], None], on_look: Callable[[], None] = lambda: None) -> None:
        self._log = log
        self._on_line = on_line
        self._on_look = on_look
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="batch-engine-log", daemon=True)

    def __enter__(self) -> "LogFollower":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Returns when everything written so far has been read."""
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        rest = ""
        with self._log.open(encoding="utf-8", errors="replace", newline="") as file:
            while True:
                last_look = self._stop.is_set()
                self._on_look()
                *lines, rest = (rest + file.read()).replace("\r", "\n").split("\n")
                if last_look:
                    lines.append(rest)
                for line in filter(None, lines):
                    self._on_line(line)
                if last_look:
                    return
                self._stop.wait(_POLL_S)


def message(line: str) -> str:
    """A log line without vLLM's prefix: "(Worker pid=1) INFO 11-30 16:02:15 [cpu_worker.py:260] …"."""
    return _PREFIX.sub("", line)


def root_cause(lines: Iterable[str]) -> str | None:
    """The first exception that a log's tracebacks end with: the others follow from it. None where there is no traceback."""
    for line in map(message, lines):
        if _EXCEPTION.match(line) and _SEQUEL not in line:
            return line
    return None


def read_log(log: Path) -> list[str]:
    """The log's lines; empty when it cannot be read."""
    try:
        return log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n").splitlines()
    except OSError:
        return []
