"""Rates over the last seconds."""

from kimi_demo.batches.progress import WINDOW_S, Meter


def test_rates_follow_the_last_seconds() -> None:
    meter = Meter()
    assert meter.rates() == (0.0, 0.0, 0.0)
    for second in range(61):
        meter.note(float(second), second, 2 * second, 10 * second)
    assert meter.rates() == (1.0, 2.0, 10.0)
    for second in range(61, 61 + 2 * int(WINDOW_S)):
        meter.note(float(second), 60, 120, 600)
    assert meter.rates() == (0.0, 0.0, 0.0), "nothing has come for longer than the window"


def test_notes_that_come_often_cost_nothing() -> None:
    meter = Meter()
    for number in range(10_000):
        meter.note(number / 10_000, number, 0, 0)
    rows, _, _ = meter.rates()
    assert 9_000 < rows < 11_500
