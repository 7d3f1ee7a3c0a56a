"""tcpdump's counts held against the kernel's, of captures that are made up here."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation.launching.packets import pcap
from exchange_simulation.launching.packets.pcap import Direction, Traffic, compare_with_counters
from tests.exchange_simulation.launching.packets.sample_records import ENGINE, GATEWAY, duplex

THERE, BACK = (GATEWAY, ENGINE), (ENGINE, GATEWAY)
STRANGER = ("10.0.0.1:1", "10.0.0.2:2")
SAID = {"captured": 300, "received": 300, "dropped": 0}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch):
    """The check, of what a capture is made to hold."""

    def check_of(seen: dict[Direction, Traffic]):
        monkeypatch.setattr(pcap, "counts", lambda _: seen)
        return compare_with_counters(duplex(), Path("it.pcap"), SAID)

    return check_of


def test_equal_counts_are_off_by_nothing(held):
    assert held({THERE: Traffic(100, 5_000), BACK: Traffic(200, 20_000)})["off_by"] == {"segments": 0.0, "bytes": 0.0}


def test_shares_are_of_the_larger_count_over_both_directions(held):
    found = held({THERE: Traffic(175, 4_500), BACK: Traffic(200, 20_000)})["off_by"]
    assert found["segments"] == pytest.approx(75 / 375)
    assert found["bytes"] == pytest.approx(500 / 25_000)


def test_both_counts_stand_by_direction(held):
    found = held({THERE: Traffic(101, 5_000), BACK: Traffic(200, 20_001)})["directions"]
    assert [(each["segments"], each["segments_captured"]) for each in found] == [(100, 101), (200, 200)]
    assert [(each["bytes"], each["bytes_captured"]) for each in found] == [(5_000, 5_000), (20_000, 20_001)]


def test_a_strangers_packets_are_held_against_nothing(held):
    found = held({STRANGER: Traffic(9, 9)})
    assert (found["directions"], found["off_by"]) == ([], {"segments": None, "bytes": None})
