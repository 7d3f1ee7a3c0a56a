"""Confirm times: counted for each publish by the link, as figures in run.json, as rows where a run is shown."""

from __future__ import annotations

import pytest

from exchange.confirms import confirm_rows, with_confirm_figures
from transports.confirm_times import ConfirmTimes


def test_each_publish_counts_from_its_hand_over_to_the_confirm_of_all_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = 0
    monkeypatch.setattr("transports.confirm_times.time.monotonic_ns", lambda: now_ns)
    times = ConfirmTimes()
    times.sent(3)
    now_ns = 100
    times.sent(5)
    now_ns = 120
    times.confirmed(4)  # three took 120 ns, and one 20 ns
    times.confirmed(4)
    now_ns = 164
    times.confirmed(5)
    assert times.facts() == {"confirm_ns": [20, 64, 120], "confirm_counts": [1, 1, 3]}


def test_times_are_rounded_by_less_than_a_sixty_fourth(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 0
    monkeypatch.setattr("transports.confirm_times.time.monotonic_ns", lambda: now_ns)
    times = ConfirmTimes()
    times.sent(1)
    now_ns = 1_234_567
    times.confirmed(1)
    [time_ns] = times.facts()["confirm_ns"]
    assert now_ns * (1 - 1 / 64) < time_ns <= now_ns


def test_figures_replace_the_counted_times() -> None:
    link = {"published": 100, "confirm_ns": [1000, 2000, 9000], "confirm_counts": [50, 49, 1]}
    facts = with_confirm_figures(link)
    assert facts["published"] == 100
    assert "confirm_ns" not in facts
    figures = facts["confirm_us"]
    assert (figures["count"], figures["p50"], figures["p99"], figures["max"]) == (100, 1.0, 2.0, 9.0)
    record = {"broker": {"links": {"gateway": facts, "engine": {"published": 1}}}}
    assert confirm_rows(record) == [("confirms to the gateway", figures)]


def test_a_link_without_confirms_keeps_its_facts() -> None:
    assert with_confirm_figures({"published": 3}) == {"published": 3}
    assert confirm_rows({"broker": None}) == []


def test_a_percentile_has_the_same_rank_as_every_other_percentile() -> None:
    """99.9 % of 41,000 is 40,959.00000000001 in binary."""
    facts = with_confirm_figures({"confirm_ns": [1000, 2000], "confirm_counts": [40_959, 41]})
    assert facts["confirm_us"]["p999"] == 1.0
