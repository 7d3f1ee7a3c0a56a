"""The statistics of claims on curves: straight or bent, and an overhead that grows or stays."""

from __future__ import annotations

import pytest

from exchange.json_records import Record
from exchange_simulation.papers.statistics import figure_at, largest, ratio, straightness, with_rise_of

AT = (8, 32, 64)
STRAIGHT_US = {8: 20.0, 32: 44.0, 64: 76.0}
FLAT_US = dict.fromkeys(AT, 20.0)
BENT_UPWARDS_US = {8: 20.0, 32: 24.0, 64: 76.0}


def record_of(**curves_us: dict[int, float]) -> Record:
    """A part's record with a curve for each transport, by size."""
    rows = []
    for transport, curve_us in curves_us.items():
        for size, us in curve_us.items():
            repeat = {"repeat": 1, "status": "complete", "noise": None, "figures": {"us": us}}
            rows.append({"transport": transport, "point": {"size_bytes": size}, "repeats": [repeat]})
    return {"settings": {"repeats": 1}, "rows": rows}


@pytest.mark.parametrize(
    ("curve_us", "expected"),
    [(STRAIGHT_US, 1.0), (FLAT_US, 1.0), (BENT_UPWARDS_US, 24.0 / 44.0)],
    ids=["straight", "flat", "bent upwards"],
)
def test_a_straight_line_has_its_middle_between_its_ends(curve_us: dict[int, float], expected: float) -> None:
    statistic = straightness("", "part", "us", "size_bytes", AT)

    assert statistic.values({"part": record_of(tcp=curve_us)}) == {1: pytest.approx(expected)}


def test_a_claim_reads_the_papers_own_transport_and_the_first_network() -> None:
    record = record_of(amqp={8: 1.0}, nats={8: 9.0})
    for network, row in (("gige", 0), ("local", 1)):
        record["rows"].append({**record["rows"][row], "point": {"size_bytes": 8, "network": network}})
    record["rows"] = record["rows"][2:] + record["rows"][:2]

    assert largest("us")(record) == {1: 1.0}
    assert figure_at("us", size_bytes=8)(record) == {1: 1.0}


@pytest.mark.parametrize(("large_us", "expected"), [(80.0, 1.0), (96.0, 1.2), (64.0, 0.8)])
def test_an_overhead_that_grows_gives_more_than_1(large_us: float, expected: float) -> None:
    """zeromq has 10 us more than tcp for 8 bytes, and would have 70 + 10 us for 64 if that overhead stayed."""
    tcp = {size: figure_at("us", transport="tcp", size_bytes=size) for size in (8, 64)}
    zeromq = {size: figure_at("us", transport="zeromq", size_bytes=size) for size in (8, 64)}
    statistic = ratio("", "part", zeromq[64], with_rise_of(tcp[64], tcp[8], zeromq[8]))
    record = record_of(tcp={8: 20.0, 64: 70.0}, zeromq={8: 30.0, 64: large_us})

    assert statistic.values({"part": record}) == {1: pytest.approx(expected)}
