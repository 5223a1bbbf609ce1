"""vLLM's metrics: reading them, rates, percentiles, restarts."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.metrics.history import History, Moment, percentile, rates
from kimi_demo.engines.metrics.reading import Reading, read_metrics

TEXT = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="/models/K 2.5"} 3.0
vllm:num_requests_running{engine="1",model_name="/models/K 2.5"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.4
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 120.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 1000.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 5.0
vllm:request_success_total{engine="1",finished_reason="stop",model_name="m"} 1.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 2.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 4.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="m"} 8.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 3.5
# TYPE python_info gauge
python_info{version="3.11"} 1.0
"""


def test_engines_are_added_up() -> None:
    found = read_metrics(TEXT)
    assert (found.running, found.waiting) == (7.0, 2.0) and found.cache_use == pytest.approx(0.3)
    assert found.finished == {"stop": 6.0, "abort": 2.0}
    assert found.first_token == {0.1: 4.0, 0.5: 8.0, inf: 10.0}
    assert found.preemptions is None and found.queue == {}


def test_older_names_are_known() -> None:
    assert read_metrics("vllm:gpu_cache_usage_perc 0.5\n").cache_use == 0.5


@pytest.mark.parametrize("text", ["<html><body>Sign in</body></html>", "vllm:num_requests_running{ 1", "a b c d e"])
def test_what_is_no_list_of_metrics(text: str) -> None:
    with pytest.raises(Failure) as failed:
        read_metrics(text)
    assert failed.value.code == "metrics.unreadable"


def test_nothing_and_no_numbers() -> None:
    assert read_metrics("") == Reading()
    assert read_metrics("vllm:num_requests_running NaN\n").running is None


def test_rates_between_two_readings() -> None:
    old = Reading(prompt_tokens=100, generation_tokens=1000, prefix_queries=10, prefix_hits=1, preemptions=0)
    new = Reading(prompt_tokens=300, generation_tokens=1500, prefix_queries=20, prefix_hits=6, preemptions=2)
    found = rates(Moment(10.0, old), Moment(14.0, new))
    assert (found.prompt, found.generation, found.hits, found.preemptions) == (50.0, 125.0, 0.5, 2.0)
    same = rates(Moment(10.0, old), Moment(10.0, old))
    assert same.prompt is None and same.hits is None


def test_percentiles_count_only_what_came_between() -> None:
    earlier = {0.1: 100.0, 0.5: 100.0, 1.0: 100.0, inf: 100.0}
    later = {0.1: 100.0, 0.5: 110.0, 1.0: 120.0, inf: 120.0}
    assert percentile(earlier, later, 0.5) == pytest.approx(0.5)
    assert percentile(earlier, later, 0.25) == pytest.approx(0.3)
    assert percentile(earlier, later, 0.95) == pytest.approx(0.95)
    assert percentile(later, later, 0.5) is None
    assert percentile({}, {}, 0.5) is None
    assert percentile({}, {1.0: 0.0, inf: 4.0}, 0.5) == 1.0  # beyond the last bound: at least that


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_a_percentile_lies_in_the_bucket_of_the_true_one(values: list[float], share: float) -> None:
    bounds = [0.5, 1.0, 2.0, 5.0, 10.0, inf]
    counts = {bound: float(sum(value <= bound for value in values)) for bound in bounds}
    found = percentile({}, counts, share)
    true = sorted(values)[max(0, -(-share * len(values) // 1).__int__() - 1)]
    upper = next(bound for bound in bounds if true <= bound)
    lower = max([0.0, *(bound for bound in bounds if bound < upper)])
    assert found is not None and lower - 1e-9 <= found <= upper + 1e-9


def test_a_history_forgets_what_is_old_and_what_was_before_a_restart() -> None:
    history = History(seconds=10, most=5)
    for second in range(8):
        history.add(float(second), Reading(generation_tokens=second * 100.0, running=1.0))
    assert [moment.at for moment in history.moments] == [3.0, 4.0, 5.0, 6.0, 7.0]
    history.add(15.0, Reading(generation_tokens=900.0))
    assert [moment.at for moment in history.moments] == [5.0, 6.0, 7.0, 15.0]
    assert [moment.reading.running for moment in history.moments if moment.reading.running is not None] == [1.0, 1.0, 1.0]
    history.add(16.0, Reading(generation_tokens=3.0))
    assert len(history.moments) == 1 and history.rates(5) is None


def test_a_window_takes_the_last_two_where_it_is_shorter_than_the_interval() -> None:
    history = History()
    history.add(0.0, Reading(generation_tokens=0.0, first_token={1.0: 0.0, inf: 0.0}))
    assert history.percentile("first_token", 0.5, 60) is None
    history.add(10.0, Reading(generation_tokens=50.0, first_token={1.0: 4.0, inf: 4.0}))
    found = history.rates(1.0)
    assert found is not None and found.generation == 5.0
    assert history.percentile("first_token", 0.5, 60) == 0.5
