"""How much is measured: all of it, or just enough to see that every measurement works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """repeats: pairs of raw and page, of which the median counts. streams, stream_tokens, stream_rate: the loads of throughput.
    lengths: where bytes and browser time are measured, `window` tokens long each; length_rate: tokens/s there. floor_tokens, floor_rate,
    floor_messages: the run against the bare page. messages: of the long conversation. memory_streams, memory_runs: few and many."""

    quick: bool
    repeats: int
    streams: tuple[int, int, int]
    stream_tokens: int
    stream_rate: int
    idle_s: float
    lengths: tuple[int, int, int]
    window: int
    length_rate: int
    floor_tokens: int
    floor_rate: int
    floor_messages: int
    messages: int
    presses: int
    memory_streams: tuple[int, int]
    memory_runs: tuple[int, int]


FULL = Sizes(
    quick=False,
    repeats=3,
    streams=(1, 16, 64),
    stream_tokens=500,
    stream_rate=50,
    idle_s=5.0,
    lengths=(1_000, 10_000, 50_000),
    window=2_500,
    length_rate=1_000,
    floor_tokens=2_000,
    floor_rate=200,
    floor_messages=20,
    messages=100,
    presses=5,
    memory_streams=(1, 200),
    memory_runs=(10, 10_000),
)
QUICK = Sizes(
    quick=True,
    repeats=1,
    streams=(1, 2, 4),
    stream_tokens=50,
    stream_rate=50,
    idle_s=0.2,
    lengths=(100, 300, 600),
    window=200,
    length_rate=200,
    floor_tokens=100,
    floor_rate=200,
    floor_messages=2,
    messages=4,
    presses=1,
    memory_streams=(1, 4),
    memory_runs=(2, 10),
)
