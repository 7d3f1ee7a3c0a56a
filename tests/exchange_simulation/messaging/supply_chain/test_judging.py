"""A run is judged by its counts: what is lost, doubled, left, late or off the plan fails, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from exchange.measurements import LogBuckets
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.supply_chain.chain import Chain, ChainTimes
from exchange_simulation.messaging.supply_chain.judging import figures_of, wrong_with
from exchange_simulation.messaging.supply_chain.topologies import vertical

CHAIN = Chain(vertical(10).only((4, 5)))
TIMES = ChainTimes(warm_up_s=0.0, measured_s=10.0, drain_s=5.0)
MS = 1_000_000
Details = dict[str, Any]


def counts(sent: int, took_ms: int) -> Details:
    took = LogBuckets.of(np.full(sent, took_ms * MS, np.int64))
    return {
        "sent": sent,
        "received": sent,
        "doubled": 0,
        "measured_sent": sent,
        "measured_received": sent,
        "measured_bytes": 1024 * sent,
        "delivery": took,
        "since_due": took,
    }


def as_planned() -> dict[str, RoleResult]:
    """182 and 667 messages in ten seconds."""
    messages = {"inventoryInfo": counts(182, 2), "statInfoSM": counts(667, 3)}
    assert CHAIN.deliveries(TIMES) == 182 + 667
    return {"supermarket 1": RoleResult(details={"messages": messages, "lag": LogBuckets(), "left_in_queues": 0})}


def wrong(change: Callable[[Details], None]) -> list[str]:
    results = as_planned()
    change(results["supermarket 1"].details)
    return wrong_with(CHAIN, TIMES, 0.5, results)


def test_a_run_that_kept_to_its_plan_has_passed() -> None:
    assert wrong(lambda _: None) == []
    figures = figures_of(CHAIN, TIMES, as_planned())
    assert (figures["delivered_per_s"], figures["c_percent"]) == (84.9, pytest.approx(100 * 667 / 849))
    assert figures["off_plan_percent"] == pytest.approx(100 * (18.2 / 18.18 - 1), rel=0.01)


def test_lost_messages_fail() -> None:
    def lose(details: Details) -> None:
        details["messages"]["statInfoSM"]["received"] -= 1

    (said,) = wrong(lose)
    assert said == "1 messages had not come 5 s after the last interaction began, or are lost"


def test_doubled_messages_fail() -> None:
    def double(details: Details) -> None:
        details["messages"]["inventoryInfo"].update(received=183, doubled=1)

    assert wrong(double) == ["1 messages inventoryInfo came twice"]


def test_what_lies_in_a_queue_fails() -> None:
    assert wrong(lambda details: details.update(left_in_queues=7)) == ["7 messages lie in queues after the drain"]


@pytest.mark.parametrize(("sent", "passes"), [(635, True), (634, False), (700, True), (701, False)])
def test_counts_more_than_5_percent_off_the_plan_fail(sent: int, passes: bool) -> None:
    def shift(details: Details) -> None:
        details["messages"]["statInfoSM"]["measured_sent"] = sent

    assert (not wrong(shift)) == passes


def test_slow_deliveries_fail_and_say_the_bound() -> None:
    def slow(details: Details) -> None:
        details["messages"]["statInfoSM"]["delivery"] = LogBuckets.of(np.full(667, 700 * MS, np.int64))

    assert wrong(slow) == ["statInfoSM: 90 % were delivered within 700 ms, and the bound is 500 ms"]


def test_an_agent_that_stopped_is_named_first() -> None:
    results = {**as_planned(), "centre 1": RoleResult(stopped="the broker went away")}
    assert wrong_with(CHAIN, TIMES, 0.5, results) == ["centre 1: the broker went away"]
