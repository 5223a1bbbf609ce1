"""What the batch engine's thread can be told to do."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from kimi_demo.dialect.events import Phase
from kimi_demo.engines.offline_launch import OfflineLaunch
from kimi_demo.engines.offline_rows import Batch
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
    batch: Batch


@dataclass
class Abort:
    batch: Batch


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


Command = Load | Unload | Start | Abort | Call | Died | Quit
