"""What a run was offered: in the words of the user who typed it, and second by second."""

from __future__ import annotations

from typing import Any

import pytest

from exchange.load_shape import LoadShape
from exchange_simulation.reports.run.offered_load import LoadOfRun, load_in_words, load_over_time
from exchange_simulation.reports.run.terminal import headline


def settings_of(typed: str) -> dict[str, Any]:
    """The settings of a run with this load, as run.json has them."""
    shape = LoadShape.parse(typed)
    return {
        "transport": "zeromq",
        "orders_per_s": shape.highest,
        "arrivals": f"steps:{shape.in_shares().text}",
        "orders": None,
        "duration_s": shape.length_s,
        "seed": 1,
    }


@pytest.mark.parametrize("typed", ["2000@5s,60000@0.5s,2000@10s", "1000..8000@20s", "900@10s,1400@7s"])
def test_a_load_is_shown_as_the_user_typed_it(typed: str) -> None:
    load = load_over_time(settings_of(typed))
    assert load is not None
    assert load_in_words(load) == f"{typed} orders/s"
    record = {"status": "complete", "settings": settings_of(typed), "completion_us": {}}
    assert headline(record) == f"complete: zeromq at {typed} orders/s, seed 1"


def test_of_a_long_load_only_the_number_of_segments_is_shown() -> None:
    load = LoadShape.parse(",".join(["1000@1s,2000@1s"] * 10))
    assert load_in_words(load) == "up to 2,000 orders/s in 20 segments"


def test_each_second_has_the_rate_that_it_was_offered() -> None:
    run = {"settings": settings_of("2000@1s,60k@500ms,2000..4000@1s"), "rates": {}}
    run["rates"] = {"offered_orders_per_s": (2000 + 30_000 + 3000) / 2.5}
    offered = LoadOfRun.of_run(run)
    assert [offered.in_second(second) for second in range(4)] == pytest.approx([2000, 31_250, 1750, 0])


def test_the_rate_of_a_short_last_second_is_over_its_length_as_what_was_sent_is() -> None:
    """Regression: 1,000 orders due in the last half second were shown as 1,000/s beside 2,000/s sent."""
    run = {"settings": settings_of("2000@2500ms"), "rates": {"offered_orders_per_s": 2000.0}, "duration_s": 2.5}
    offered = LoadOfRun.of_run(run)
    assert [offered.in_second(second) for second in range(4)] == pytest.approx([2000, 2000, 2000, 0])


def test_the_gateways_of_a_run_are_offered_their_rates_together() -> None:
    settings = {**settings_of("1000@1s,3000@1s"), "pairs": 4}
    run = {"settings": settings, "rates": {"offered_orders_per_s": 8000.0}}
    offered = LoadOfRun.of_run(run)
    assert [offered.in_second(second) for second in range(2)] == pytest.approx([4000, 12_000])


@pytest.mark.parametrize(
    ("end", "by_second"),
    [
        ({"orders": 1_500}, [1000, 500, 0, 0, 0]),
        ({"orders": None, "duration_s": 1.5}, [1000, 1500, 0, 0, 0]),
        ({"orders": 10_000, "duration_s": None}, [1000, 3000, 3000, 3000, 0]),
        ({"orders": None, "duration_s": None}, [1000, 3000, 3000, 3000, 3000]),
    ],
)
def test_each_second_of_steps_has_its_rate_until_the_last_order_is_due(
    end: dict[str, float | None], by_second: list[float]
) -> None:
    """Regression: seconds after the last segment had no load, and a run that ended before had the whole shape."""
    settings = {**settings_of("1000@1s,3000@1s"), **end}
    offered = LoadOfRun.of_run({"settings": settings, "rates": {"offered_orders_per_s": 2000.0}})
    assert [offered.in_second(second) for second in range(5)] == pytest.approx(by_second)


@pytest.mark.parametrize(("arrivals", "rate"), [("fixed", 500.0), ("poisson", 500.0), ("ramp:0.1..1", None)])
def test_a_load_without_steps_has_one_rate_or_none(arrivals: str, rate: float | None) -> None:
    run = {"settings": {"orders_per_s": 500.0, "arrivals": arrivals}, "rates": {"offered_orders_per_s": 500.0}}
    assert LoadOfRun.of_run(run).in_second(3) == rate


@pytest.mark.parametrize("end", [{"orders": 10_000}, {"duration_s": 2.5}])
def test_nothing_is_offered_after_the_end_of_a_steady_load(end: dict[str, float]) -> None:
    settings = {"orders_per_s": 4000.0, "arrivals": "fixed", **end}
    offered = LoadOfRun.of_run({"settings": settings, "rates": {"offered_orders_per_s": 4000.0}})
    assert [offered.in_second(second) for second in range(4)] == [4000, 4000, 4000, 0]
