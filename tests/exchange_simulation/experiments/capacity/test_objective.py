"""Objectives: their syntax, and which runs hold them."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from exchange_simulation.experiments.capacity.exchange_rates import objective_of
from exchange_simulation.launching.errors import UserError


def run(status: str = "complete", p99: float = 500.0, lag: float = 50.0) -> dict[str, Any]:
    """The record of a run. `p99` is its completion time from due, `lag` the gateway's; both in us."""
    figures = {"mean": 100.0, "p50": 90.0, "p99": p99, "p999": 2 * p99, "max": 9_000.0}
    return {
        "status": status,
        "reasons": ["42 orders were never answered"] if status == "partial" else [],
        "completion_us": {"due": figures, "handed_over": {**figures, "p99": 400.0}},
        "lag_us": {"p99": lag},
    }


@pytest.mark.parametrize(
    ("text", "clock", "figure", "most_us"),
    [
        ("p99 <= 1ms", "due", "p99", 1_000.0),
        ("due p50<=86us", "due", "p50", 86.0),
        ("handed over p99.9 < 0.5 s", "handed_over", "p999", 500_000.0),
        ("lag p99 <= 500us", "lag", "p99", 500.0),
        ("max <= 20000 ns", "due", "max", 20.0),
    ],
)
def test_a_term_is_read_as_clock_figure_and_bound(text: str, clock: str, figure: str, most_us: float) -> None:
    (term,) = objective_of(text).terms
    assert term.clock == clock
    assert term.figure == figure
    assert term.most_us == pytest.approx(most_us)


@pytest.mark.parametrize(
    "text", ["", "p99", "p100 <= 1ms", "p99 <= 1", "p99 >= 1ms", "p99 <= 1ms;", "loss <= 3", "fast"]
)
def test_an_objective_that_cannot_be_read_gets_the_syntax(text: str) -> None:
    with pytest.raises(UserError, match=r"not understood; it takes FIGURE <= TIME"):
        objective_of(text)


def test_a_bound_of_zero_is_refused() -> None:
    with pytest.raises(UserError, match="'p99 <= 0ms' allows no time at all; it takes FIGURE <= TIME"):
        objective_of("max <= 1ms, p99 <= 0ms")


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (run(), None),
        (run(p99=1_000.0), None),
        (run(p99=1_001.0), "p99 <= 1ms: 1,001 us"),
        (run(lag=501.0), "lag p99 <= 500us: 501 us"),
        (run(status="saturated"), "saturated: no reason known"),
        (run(status="partial"), "partial: 42 orders were never answered"),
        ({**run(), "completion_us": {}}, "p99 <= 1ms: not measured"),
    ],
)
def test_a_run_holds_an_objective_if_it_holds_all_terms_and_is_complete(
    record: dict[str, Any], why: str | None
) -> None:
    assert objective_of("p99 <= 1ms, lag p99 <= 500us, loss = 0").broken_by(record) == why


@pytest.mark.parametrize(
    ("text", "orders"),
    [("p90 <= 1ms", 100), ("p99 <= 1ms", 1_000), ("p50 <= 1ms, p99.9 <= 1ms", 10_000), ("loss = 0", 100)],
)
def test_a_percentile_needs_ten_orders_beyond_it(text: str, orders: int) -> None:
    assert objective_of(text).needed_orders == orders


def test_the_ratio_comes_from_the_term_nearest_to_breaking() -> None:
    objective = objective_of("p99 <= 1ms, lag p99 <= 100us")
    assert objective.log_ratio(run(p99=500.0, lag=200.0)) == pytest.approx(log(2))
    assert objective.log_ratio({**run(), "lag_us": {}}) is None
    assert objective_of("loss = 0").log_ratio(run()) is None


@pytest.mark.parametrize(
    ("reasons", "p99", "holds"),
    [
        (["the gateway's p99 lag is 12.0 ms, though the rate was held"], 900.0, True),
        (["the gateway's p99 lag is 12.0 ms, though the rate was held"], 1_100.0, False),
        (["the gateway's p99 lag is 12.0 ms", "offered 900 of 1,000 orders/s"], 900.0, False),
        ([], 900.0, False),
    ],
)
def test_a_run_in_which_only_the_gateway_was_late_is_judged_by_its_figures(
    reasons: list[str], p99: float, holds: bool
) -> None:
    late = {**run("saturated", p99), "reasons": reasons}
    assert (objective_of("p99 <= 1ms").broken_by(late) is None) == holds
