"""A server of vLLM's that several tests share, with what its start told."""

from dataclasses import dataclass

from kimi_demo.dialect.events import Phase
from kimi_demo.engines.server import Server


@dataclass
class Life:
    server: Server
    phases: list[Phase]
