from pathlib import Path

import pytest

from kimi_demo.dialect.events import Phase
from kimi_demo.engines.phases import ORDER, Progress, phase_of
from kimi_demo.engines.server_log import Lines
from kimi_demo.ui.texts import LANGUAGES, texts

LOGS = Path(__file__).parent / "logs"


def phases_in(log: Path) -> list[Phase]:
    progress = Progress()
    found = (phase_of(line) for line in Lines().feed(log.read_bytes(), last=True))
    return [phase for phase in found if phase is not None and progress.step(phase)]


def test_the_phases_of_a_real_start_on_a_cpu() -> None:
    assert phases_in(LOGS / "cpu-start.log") == [
        Phase("server.reading_model"),
        Phase("server.starting_engine"),
        Phase("server.loading_weights"),
        Phase("server.loading_weights", 0, 1),
        Phase("server.loading_weights", 1, 1),
        Phase("server.profiling"),
        Phase("server.kv_cache"),
        Phase("server.opening"),
    ]


def test_most_lines_say_nothing() -> None:
    lines = Lines().feed((LOGS / "cpu-start.log").read_bytes(), last=True)
    assert sum(phase_of(line) is not None for line in lines) == 11 and len(lines) > 50


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        # as tqdm draws what vLLM 0.32's source gives it
        ("Loading safetensors checkpoint shards:  50% Completed | 32/64 [52:10<49:01, 91.93s/it]", Phase("server.loading_weights", 32, 64)),
        ("Multi-thread loading shards:   3% Completed | 2/64 [00:10<05:01,  5.1s/it]", Phase("server.loading_weights", 2, 64)),
        (
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  20%|██        | 7/35 [00:01<00:04,  6.62it/s]",
            Phase("server.graphs", 7, 35),
        ),
        ("Capturing CUDA graphs:   0%|          | 0/67 [00:00<?, ?it/s]", Phase("server.graphs", 0, 67)),
        ("Fetching 96 files:  10%|█         | 10/96 [00:09<01:20,  1.06it/s]", Phase("server.downloading", 10, 96)),
        ("(Worker_TP0 pid=9) INFO 11-30 16:01:48 [gpu_worker.py:760] Available KV cache memory: 46.7 GiB", Phase("server.kv_cache")),
        ("(EngineCore pid=9) INFO 11-30 16:01:48 [kv_cache_utils.py:2327] GPU KV cache size: 697,344 tokens, …", Phase("server.kv_cache")),
        ("(Worker_TP0 pid=9) INFO 11-30 16:01:48 [backends.py:1167] Dynamo bytecode transform time: 9.12 s", Phase("server.compiling")),
        ("(Worker pid=9) INFO 11-30 16:01:48 [kernel_warmup.py:291] Warming up FlashInfer attention.", Phase("server.warming_up")),
        ("(Worker pid=9) INFO 11-30 16:01:48 [cpu_model_runner.py:87] Warming up model for the compilation...", Phase("server.compiling")),
        ('INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK', None),
        ("", None),
    ],
)
def test_lines_of_other_starts(line: str, phase: Phase | None) -> None:
    assert phase_of(line) == phase


def test_a_start_never_goes_back() -> None:
    progress = Progress()
    heard = [
        ("server.loading_weights", 1),
        ("server.loading_weights", 1),
        ("server.starting_engine", None),
        ("server.loading_weights", 3),
        ("server.loading_weights", 2),
        ("server.loading_weights", None),
        ("server.profiling", None),
        ("server.profiling", None),
        ("server.loading_weights", 4),
    ]
    told = [(name, done) for name, done in heard if progress.step(Phase(name, done, 8 if done else None))]
    assert told == [("server.loading_weights", 1), ("server.loading_weights", 3), ("server.profiling", None)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_phase_has_words(language: str) -> None:
    assert all(texts(language).say(f"phase.{name}") for name in ORDER)
