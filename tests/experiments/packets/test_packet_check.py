"""tcpdump's counts against the kernel's, from made ones."""

from __future__ import annotations

import pytest

from experiments.packets.check import Disagreement, disagreement
from experiments.packets.pcap import Traffic
from experiments.packets.table import packet_rows, total
from tests.experiments.packets.made_records import ENGINE, GATEWAY, duplex

THERE, BACK = (GATEWAY, ENGINE), (ENGINE, GATEWAY)


def traffic(segments: int, payload: int) -> Traffic:
    """Evenly over two seconds."""
    return Traffic(segments, payload, payload + 52 * segments, 0, 2_000_000_000)


def test_equal_counts_disagree_by_nothing():
    found = disagreement(packet_rows(duplex()), {THERE: traffic(100, 5_000), BACK: traffic(200, 20_000)})
    assert [found[way].worst for way in (THERE, BACK)] == [0.0, 0.0]
    assert found[THERE].mean_gap == pytest.approx(0.01)


def test_shares_are_of_the_larger_of_both():
    found = disagreement(packet_rows(duplex()), {THERE: traffic(125, 4_500), BACK: traffic(200, 20_000)})
    assert found[THERE].segments == pytest.approx(0.2)
    assert found[THERE].payload_bytes == pytest.approx(0.1)
    assert found[THERE].worst == found[THERE].segments


def test_what_was_not_captured_disagrees_wholly_and_a_stranger_not_at_all():
    found = disagreement(packet_rows(duplex()), {("10.0.0.1:1", "10.0.0.2:2"): traffic(9, 9)})
    assert found == {THERE: Disagreement(1.0, 1.0, 1.0), BACK: Disagreement(1.0, 1.0, 1.0)}


def test_a_total_is_no_connection():
    rows = packet_rows(duplex())
    assert set(disagreement([*rows, total(rows)], {})) == {THERE, BACK}
