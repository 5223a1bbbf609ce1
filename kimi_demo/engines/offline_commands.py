"""What the batch engine's thread can be told to do."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from kimi_demo.dialect.events import Phase
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.offline_rows import Job
from kimi_demo.engines.offline_vllm import LoadedModel


@dataclass
class Load:
    launch: OfflineLaunch
    on_phase: Callable[[Phase], None]
    done: "Future[None]" = field(default_factory=Future)


@dataclass
class Unload:
    done: "Future[None]" = field(default_factory=Future)


@dataclass
class Start:
    job: Job


@dataclass
class Abort:
    job: Job


@dataclass
class Change:
    """Rows come to a job or leave it: `change(abort)` is called on the engine's thread; abort takes request ids out of the engine."""

    job: Job
    change: Callable[[Callable[[list[str]], None]], None]


@dataclass
class Call:
    work: Callable[[Any], Any]
    done: "Future[Any]" = field(default_factory=Future)


@dataclass
class Died:
    model: LoadedModel
    exit_code: int | None


@dataclass
class Quit:
    pass


Command = Load | Unload | Start | Abort | Change | Call | Died | Quit
