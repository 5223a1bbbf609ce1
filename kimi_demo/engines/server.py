"""The vLLM server as a child process: started, followed through its log until it answers, watched, stopped with all that belongs to it."""

import asyncio
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import free_host_memory, gpus
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.log_lines import Line
from kimi_demo.engines.masking import Mask, secrets_in
from kimi_demo.engines.phases import READY, Progress, phase_of
from kimi_demo.engines.plan.refuse import refuse_what_cannot_fit
from kimi_demo.engines.processes import Watch, end
from kimi_demo.engines.server_failures import PORT_TAKEN, check_before, died, explain
from kimi_demo.engines.server_log import Lines, Logbook

if TYPE_CHECKING:
    import httpx

LOG_NAME = "vllm-server.log"

_GRACE_S = 10.0
"""How long a running server may take to end after SIGTERM; it took 0.4 to 0.9 s."""

_SHORT_GRACE_S = 1.0
"""For a starting one, which does not obey SIGTERM (seen: 25 s), and for an engine whose API server is gone, which does not either."""

_KNOCK_S = 0.25
"""How often a starting server is asked whether it is there."""

_KNOCKS = re.compile(r'"GET /(?:health|metrics|ping) HTTP/1\.[01]" 200')
"""What the server notes about being looked at every two seconds; it would push everything else out of the log."""

_PORT_ATTEMPTS = 3
_LAST_WORDS_S = 2.0
"""How long the rest of the log may take to arrive after the exit."""


class Server:
    """A running vLLM server. Make one with `start`.

    base_url: for an OpenAI client; api_key: what it must send; pid: vLLM's API server, which leads the session of all its processes.
    Its methods may be called from any event loop. Should only the API server be killed, its engine and workers are ended, too.
    """

    def __init__(self, launch: Launch, on_phase: Callable[[Phase], None], guardian: Guardian | None = None) -> None:
        """Starts the process; `on_phase` is called from another thread. launch.port must be set. Raises OSError."""
        self.launch = launch
        self.base_url = f"http://127.0.0.1:{launch.port}/v1"
        self.api_key = launch.api_key
        self.ready = False
        self._on_phase = on_phase
        self._guardian = guardian or Guardian()
        self._owns_guardian = guardian is None
        self._log = Logbook(launch.logs / LOG_NAME, Mask([launch.api_key, *secrets_in()]))
        self._exited: Future[int] = Future()
        self._gone: Future[None] = Future()
        self._process = subprocess.Popen(
            launch.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=launch.child_environment(os.environ),
            start_new_session=True,  # Ctrl-C in the terminal is for the application; and its session is how its orphans are found
            bufsize=0,
        )
        self.pid = self._process.pid
        self._guardian.watch_session(self.pid)
        self._reader = threading.Thread(target=self._read, name="vllm-server-log", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name="vllm-server-exit", daemon=True).start()

    @classmethod
    async def start(
        cls,
        launch: Launch,
        on_event: Callable[[Event], None],
        guardian: Guardian | None = None,
        on_begun: Callable[["Server"], None] = lambda server: None,
    ) -> "Server":
        """A server that answers. on_event gets its phases, on this event loop. Without `guardian`, the server has one of its own.
        on_begun gets the server as soon as it is a process (again, where another port is tried): its log tells what goes on.

        Takes as long as it takes (Kimi K2.5 from a network disk: 1 h 45 min). Cancelling ends the process and leaves nothing behind.
        Raises Failure: the codes of `server_failures.check_before` and `explain`, and `plan.` ones where the GPUs cannot hold the model.
        """
        await asyncio.to_thread(_check, launch)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            tell, hear = _told_in_order(on_event, asyncio.get_running_loop())
            tell(Phase("server.starting"))
            server = cls(launch if launch.port else replace(launch, port=_free_port()), hear, guardian)
            on_begun(server)
            try:
                await server._until_ready()
                tell(Phase(READY))
                return server
            except BaseException as error:
                await server.stop()
                taken = isinstance(error, Failure) and error.code == PORT_TAKEN
                if launch.port or not taken or attempt == _PORT_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    @property
    def exited(self) -> bool:
        return self._exited.done()

    async def wait_exit(self) -> int:
        """Returns when vLLM's API server ends: its exit code, negative for the signal that ended it."""
        return await asyncio.shield(asyncio.wrap_future(self._exited))

    def failure(self) -> Failure:
        """Why the server ended; after `wait_exit`."""
        lines, code = self._log.tail(2000), self._exited.result(timeout=0)
        return died(lines, code) if self.ready else explain(lines, code, self.launch.model)

    def log_tail(self, count: int) -> list[str]:
        """The last lines of its log (at most 2,000), oldest first."""
        return self._log.tail(count)

    def log_since(self, number: int) -> list[Line]:
        """The lines after line `number` (at most the last 2,000), oldest first."""
        return self._log.since(number)

    async def stop(self) -> None:
        """Ends the server and everything it started; returns when they are gone. May be called again, and when it has ended already."""
        await asyncio.shield(asyncio.to_thread(self._stop))

    def _stop(self) -> None:
        if not self._gone.done():  # afterwards its number may be somebody else's
            self._end_all(_GRACE_S if self.ready else _SHORT_GRACE_S)
            with suppress(TimeoutError):  # one that not even SIGKILL ends
                self._gone.result(timeout=_GRACE_S)

    def _end_all(self, grace_s: float) -> None:
        end(Watch("session", self.pid).look, grace_s)

    async def _until_ready(self) -> None:
        import httpx

        exited = asyncio.ensure_future(self.wait_exit())
        try:
            async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
                while not exited.done():
                    if await self._answers(client):
                        self.ready = True
                        return
                    await asyncio.wait([exited], timeout=_KNOCK_S)
        finally:
            exited.cancel()
        await asyncio.shield(asyncio.wrap_future(self._gone))
        raise self.failure()

    async def _answers(self, client: "httpx.AsyncClient") -> bool:
        """Whether our server is ready at our port. Another's on the same port does not take our key, or takes any; without a key ours is
        known by what it serves (and by our process, which does not live on where it could not listen)."""
        import httpx

        try:
            if (await client.get(self.base_url.removesuffix("v1") + "health")).status_code != 200:
                return False
            if not self.api_key:
                return self._serves_our_model(await client.get(self.base_url + "/models"))
            ours = await client.get(self.base_url + "/models", headers={"Authorization": f"Bearer {self.api_key}"})
            anyone = await client.get(self.base_url + "/models")
        except httpx.HTTPError:
            return False
        return ours.status_code == 200 and anyone.status_code == 401

    def _serves_our_model(self, answer: "httpx.Response") -> bool:
        try:
            cards = answer.json()["data"] if answer.status_code == 200 else []
            return any(self.launch.model in (card.get("id"), card.get("root")) for card in cards)
        except (ValueError, KeyError, TypeError, AttributeError):
            return False

    def _read(self) -> None:
        """Until every process that writes to the log has ended."""
        lines, pipe = Lines(), self._process.stdout
        assert pipe is not None
        while data := pipe.read(65536):
            self._note(lines.feed(data))
            # A progress bar has no end until it is redrawn, which may take minutes; it says enough already.
            if (phase := phase_of(lines.rest)) is not None:
                self._on_phase(phase)
        self._note(lines.feed(b"", last=True))
        pipe.close()

    def _note(self, lines: list[str]) -> None:
        for line in lines:
            if _KNOCKS.search(line):
                continue
            self._log.write(line)
            if (phase := phase_of(line)) is not None:
                self._on_phase(phase)

    def _wait(self) -> None:
        """Tells of the exit at once, then ends what it may have left: vLLM's engine outlives a killed API server."""
        code = self._process.wait()
        self._reader.join(timeout=0.2)  # so that whoever hears of the exit finds its last words in the log
        self._exited.set_result(code)
        self._end_all(_SHORT_GRACE_S)
        if self._owns_guardian:
            self._guardian.close()
        else:
            self._guardian.forget(self.pid)
        self._reader.join(timeout=_LAST_WORDS_S)
        self._log.close()
        self._gone.set_result(None)


_Teller = Callable[[Phase], None]


def _check(launch: Launch) -> None:
    check_before(launch, free_host_memory())
    if not launch.anyway:
        refuse_what_cannot_fit(launch, gpus())


def _told_in_order(on_event: Callable[[Event], None], loop: asyncio.AbstractEventLoop) -> tuple[_Teller, _Teller]:
    """(for this loop, for other threads): both pass phases on to `on_event`, on `loop`, and never go back to an earlier one."""
    progress = Progress()

    def tell(phase: Phase) -> None:
        if progress.step(phase):
            on_event(phase)

    def hear(phase: Phase) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, phase)

    return tell, hear


def _free_port() -> int:
    """A port that nobody listens on now. Another program may take it before vLLM does; then vLLM says so and another is tried."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
