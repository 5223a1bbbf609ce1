"""The scripted server in a process of its own, so that what it costs is counted for nobody; and how the benchmark speaks to it.

Run as a program it prints its base URL, then answers each line on stdin with the requests so far, as JSON on one line.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import scripted_server
from tests.programs import ROOT, Program


@dataclass(frozen=True)
class Seen:
    """A completion as the server saw it; times are seconds since the epoch, None where it did not happen."""

    at: float
    sent: int
    aborted_at: float | None
    ended_at: float | None


class Upstream:
    def __init__(self, program: Program) -> None:
        self._program = program
        self.base_url = program.wait_for(r"http://\S+/v1").group()

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")

    def seen(self) -> list[Seen]:
        """Every completion so far, oldest first."""
        self._program.tell("")
        return [Seen(*each) for each in json.loads(self._program.wait_for(r"^\[.*\]$").group())]

    def until_asked(self, number: int, limit_s: float = 30.0) -> Seen:
        """The completion of that number, the first being 1, once it has been asked for. Raises TimeoutError."""
        return self._until(number, limit_s, over=False)

    def until_over(self, number: int, limit_s: float = 30.0) -> Seen:
        """The same, once it has ended or was closed."""
        return self._until(number, limit_s, over=True)

    def _until(self, number: int, limit_s: float, *, over: bool) -> Seen:
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            known = self.seen()
            if len(known) >= number and (known[number - 1].ended_at is not None or not over):
                return known[number - 1]
            time.sleep(0.05)
        raise TimeoutError(f"completion {number} was not {'over' if over else 'asked for'} after {limit_s:g} s")


@contextmanager
def running() -> Iterator[Upstream]:
    program = Program(["-m", "scripts.bench.upstream"], ROOT, {"PYTHONUNBUFFERED": "1"})
    try:
        yield Upstream(program)
    finally:
        program.kill()


def main() -> None:
    with scripted_server.running(max_model_len=262_144) as scripted:  # Kimi K2.5's; long conversations must fit
        print(scripted.base_url, flush=True)
        epoch = time.time() - time.monotonic()

        def moment(at: float | None) -> float | None:
            return None if at is None else epoch + at

        for _ in sys.stdin:
            told = [(epoch + one.at, one.sent, moment(one.aborted_at), moment(one.ended_at)) for one in scripted.chats]
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
