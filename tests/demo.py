"""The demo as people start it: `python app.py`, in a process of its own."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.programs import ROOT, Program


@dataclass
class Demo:
    """A running demo. operator: the address that was printed; address: the same without the token."""

    program: Program
    data: Path
    operator: str

    @property
    def address(self) -> str:
        return self.operator.split("/?")[0]

    def wait_for_page(self, seconds: float = 120) -> None:
        """Until Gradio's page is served: requests for anything but the front page wait for it."""
        answer = httpx.get(f"{self.address}/kimi/badge", timeout=seconds)
        assert answer.headers["content-type"].startswith("application/json"), "".join(self.program.printed)


@contextmanager
def running(data: Path, *flags: str, python: Sequence[str] = (), **variables: str) -> Iterator[Demo]:
    """The demo on a free port, its page up; stopped at the end as Ctrl-C stops it. python: flags of the interpreter."""
    arguments = [*python, "app.py", "--port", "0", "--data", str(data), *flags]
    program = Program(arguments, ROOT, {"PYTHONUNBUFFERED": "1", **variables})
    try:
        demo = Demo(program, data, program.wait_for(r"http://\S+/\?operator=\S+").group())
        demo.wait_for_page()
        yield demo
        if program.process.poll() is None:
            program.signal(signal.SIGINT)
            code, printed = program.ended(60)
            assert code == 0, printed
    finally:
        program.kill()
