"""Market data in a run's record: a loss by the rule is accounted for, and anything else makes the run invalid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from exchange.measurements import LogBuckets
from exchange.results import EngineResult, StreamCounts, SubscriberResult
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.market_data import market_data_differences, market_data_field
from exchange_simulation.launching.record.outcome import RunOutcome
from exchange_simulation.reports.run.market_data import published_words, subscriber_rows

DELIVERY = {
    name: value.tolist() if isinstance(value, np.ndarray) else value
    for name, value in LogBuckets.of(np.full(100, 500_000)).sparse().items()
}
WHOLE = SubscriberResult(
    messages=100,
    trades=60,
    quotes=40,
    levels=0,
    gaps=0,
    missed=0,
    before=0,
    repeated=0,
    snapshots=1,
    checksum="aa",
    engine_said={"sent": 100, "sent_checksum": 0xAA},
    delivery=DELIVERY,
    junk_frames=0,
    usage={},
)


def outcome(rule: str, *subscribers: SubscriberResult) -> RunOutcome:
    """Return the outcome of a run whose engine published 100 messages."""
    published = {
        "slow_subscriber": rule,
        "messages": 100,
        "checksum": "aa",
        "frames_dropped": 0,
        "waited_s": 0.0,
        "joined": [1],
    }
    engine = EngineResult(
        orders=StreamCounts(),
        answers=StreamCounts(),
        junk_frames=0,
        handshakes_refused=0,
        usage={},
        sockets=[],
        gateway_said=None,
        market_data=published,
    )
    numbers = tuple(range(1, len(subscribers) + 1))
    return RunOutcome(
        lineup=Lineup(subscribers=numbers),
        engines={1: engine},
        subscribers=dict(zip(numbers, subscribers, strict=True)),
    )


def differences(rule: str, **changes: Any) -> list[str]:
    return list(market_data_differences(outcome(rule, WHOLE, replace(WHOLE, **changes))))


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("wait", {}),
        ("drop", {"messages": 90, "missed": 10, "gaps": 2, "checksum": "bb"}),
        ("conflate", {"messages": 90, "missed": 10, "gaps": 2, "checksum": "bb"}),
        ("wait", {"messages": 70, "before": 30, "checksum": "bb"}),
        ("wait", {"messages": 7, "stopped": "interrupted"}),
    ],
)
def test_a_loss_by_the_rule_and_a_late_join_are_no_contradiction(rule: str, changes: dict[str, Any]) -> None:
    assert differences(rule, **changes) == []


@pytest.mark.parametrize(
    ("rule", "changes", "reason"),
    [
        ("drop", {"messages": 90}, "subscriber.2 has 90 of 100 messages of market data, those counted that it missed"),
        ("wait", {"repeated": 3}, "subscriber.2 received 3 messages of market data more than once"),
        (
            "wait",
            {"messages": 90, "missed": 10},
            "subscriber.2 missed 10 of 100 messages of market data, though --slow-subscriber is wait",
        ),
        ("drop", {"checksum": "bb"}, "subscriber.2 has the checksum bb of market data, and the engine aa"),
    ],
)
def test_anything_else_is_a_reason_with_the_subscribers_name(rule: str, changes: dict[str, Any], reason: str) -> None:
    assert differences(rule, **changes) == [reason]


def test_losses_are_dropped_or_conflated_by_the_rule() -> None:
    losing = replace(WHOLE, messages=90, missed=10)
    for rule, dropped, conflated in (("drop", 10, 0), ("conflate", 0, 10)):
        [entry] = market_data_field(outcome(rule, losing))["market_data"]["subscribers"]
        assert (entry["dropped"], entry["conflated"]) == (dropped, conflated)


def test_delivery_is_that_of_all_subscribers_on_the_engines_host() -> None:
    remote = replace(WHOLE, delivery=None)
    market_data = market_data_field(outcome("drop", WHOLE, WHOLE, remote))["market_data"]
    assert market_data["delivery_us"]["count"] == 200
    assert market_data["subscribers"][2]["delivery_us"] == {}


def test_a_run_without_subscribers_has_no_such_field() -> None:
    assert market_data_field(RunOutcome()) == {}


def test_of_many_subscribers_the_best_the_median_and_the_worst_are_shown() -> None:
    losing = replace(WHOLE, messages=90, missed=10)
    record = market_data_field(outcome("drop", WHOLE, losing, WHOLE, WHOLE, replace(WHOLE, delivery=None)))
    rows = subscriber_rows(record)
    assert [row.label for row in rows] == ["best: 5", "median: 3", "worst: 2"]
    assert rows[2].cells[:4] == ["90", "0", "10", "0"]
    assert len(subscriber_rows(market_data_field(outcome("drop", WHOLE, WHOLE)))) == 2


def test_the_sentence_says_how_long_the_engine_waited() -> None:
    record = market_data_field(outcome("wait", WHOLE))
    record["market_data"]["published"]["waited_s"] = 0.1
    words = "100 messages of market data to 1 subscriber, --slow-subscriber wait; the engine waited 0.10 s"
    assert published_words(record) == words
    assert published_words({}) is None
