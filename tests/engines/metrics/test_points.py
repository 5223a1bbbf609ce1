from dataclasses import replace
from pathlib import Path

from kimi_demo.engines.metrics.points import MOST_POINTS, Points
from kimi_demo.engines.metrics.reading import read_metrics

REAL = (Path(__file__).parents[1] / "logs" / "metrics.txt").read_text()


def test_a_real_answer_of_vllm_gives_every_figure() -> None:
    reading = read_metrics(REAL)
    assert reading.running is not None and reading.cache_use is not None and reading.preemptions == 0
    assert reading.prompt_tokens and reading.generation_tokens and reading.finished["stop"] == 3


def test_rates_and_latencies_are_taken_between_looks() -> None:
    points, reading = Points(), read_metrics(REAL)
    first = points.add(100.0, reading)
    assert first.generation_rate is None and first.first_token_p50 is None and first.running == reading.running
    assert reading.generation_tokens is not None
    grown = {bound: count + (2.0 if bound >= 0.5 else 0.0) for bound, count in reading.first_token.items()}
    second = points.add(102.0, replace(reading, generation_tokens=reading.generation_tokens + 50, first_token=grown))
    assert second.generation_rate == 25.0 and second.prompt_rate == 0.0
    assert second.first_token_p95 is not None and second.first_token_p95 <= 0.5
    assert second.between_p50 is None  # nothing was observed


def test_a_server_that_was_started_anew_has_no_rate_at_first() -> None:
    points, reading = Points(), read_metrics(REAL)
    points.add(100.0, reading)
    fresh = replace(reading, generation_tokens=0.0, prompt_tokens=0.0)
    assert points.add(102.0, fresh).generation_rate is None
    assert points.add(104.0, replace(fresh, generation_tokens=10.0)).generation_rate == 5.0


def test_it_is_bounded_and_forgets() -> None:
    points, reading = Points(), read_metrics(REAL)
    for at in range(MOST_POINTS + 10):
        points.add(float(at), reading)
    assert len(points.points) == MOST_POINTS and points.points[-1].at == MOST_POINTS + 9
    points.forget()
    assert not points.points and points.last is None
