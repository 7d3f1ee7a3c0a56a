"""tcpdump's counts compared with the kernel's, for captures with chosen counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation.launching.packets import pcap
from exchange_simulation.launching.packets.pcap import Direction, Traffic, compare_with_counters
from tests.exchange_simulation.launching.packets.sample_records import ENGINE, GATEWAY, duplex

THERE = (GATEWAY, ENGINE)
BACK = (ENGINE, GATEWAY)
STRANGER = ("10.0.0.1:1", "10.0.0.2:2")
TCPDUMP_COUNTS = {"captured": 300, "received": 300, "dropped": 0}


@pytest.fixture
def check_of(monkeypatch: pytest.MonkeyPatch):
    """A function that returns the check of a capture with this traffic."""

    def check(traffic: dict[Direction, Traffic]):
        monkeypatch.setattr(pcap, "counts", lambda _: traffic)
        return compare_with_counters(duplex(), Path("it.pcap"), TCPDUMP_COUNTS)

    return check


def test_equal_counts_are_off_by_nothing(check_of):
    assert check_of({THERE: Traffic(100, 5_000), BACK: Traffic(200, 20_000)})["off_by"] == {
        "segments": 0.0,
        "bytes": 0.0,
    }


def test_shares_are_of_the_larger_count_over_both_directions(check_of):
    check = check_of({THERE: Traffic(175, 4_500), BACK: Traffic(200, 20_000)})["off_by"]
    assert check["segments"] == pytest.approx(75 / 375)
    assert check["bytes"] == pytest.approx(500 / 25_000)


def test_each_direction_has_both_counts(check_of):
    there, back = check_of({THERE: Traffic(101, 5_000), BACK: Traffic(200, 20_001)})["directions"]
    assert there["segments"] == 100
    assert there["segments_captured"] == 101
    assert back["segments"] == 200
    assert back["segments_captured"] == 200
    assert there["bytes"] == 5_000
    assert there["bytes_captured"] == 5_000
    assert back["bytes"] == 20_000
    assert back["bytes_captured"] == 20_001


def test_packets_of_a_stranger_are_not_compared(check_of):
    check = check_of({STRANGER: Traffic(9, 9)})
    assert check["directions"] == []
    assert check["off_by"] == {"segments": None, "bytes": None}
