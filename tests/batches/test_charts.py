"""Figures behind the plots."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.batches.charts import BINS, histogram, rates


def test_one_very_long_text_does_not_press_the_others_together() -> None:
    found = histogram([100] * 500 + [230] * 499 + [1_000_000])
    assert found.width == 10 and found.largest == 1_000_000
    assert found.counts[10] == 500 and found.counts[23] == 500 and sum(found.counts) == 1000


def test_without_rows_there_is_an_empty_plot() -> None:
    assert histogram([]).counts == (0,) * BINS
    assert rates([], [], []).per_second == ()


@given(st.lists(st.integers(0, 10**7), min_size=1))
def test_every_value_is_in_a_bin(values: list[int]) -> None:
    found = histogram(values)
    assert sum(found.counts) == len(values) and found.largest == max(values)


def test_tokens_are_spread_over_the_time_in_the_engine() -> None:
    found = rates([100, 100], [1010.0, 1010.0], [10.0, 5.0])
    assert found.step_s == 1.0 and len(found.per_second) == 10
    assert all(math.isclose(rate, 10.0) for rate in found.per_second[:5]) and all(math.isclose(rate, 30.0) for rate in found.per_second[5:])


def test_a_night_between_two_sittings_is_left_out() -> None:
    found = rates([50, 50], [1005.0, 90_005.0], [5.0, 5.0])
    assert len(found.per_second) == 10 and all(math.isclose(rate, 10.0) for rate in found.per_second)


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(1e9, 2e9), st.floats(0, 1e4)), min_size=1, max_size=50))
def test_no_token_is_lost_or_doubled(rows: list[tuple[int, float, float]]) -> None:
    tokens, ended, took = zip(*rows, strict=True)
    found = rates(tokens, ended, took)
    assert math.isclose(sum(found.per_second) * found.step_s, sum(tokens), rel_tol=1e-3, abs_tol=1e-3)
