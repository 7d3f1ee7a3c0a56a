"""The definitions of a summary's figures, over a few records of one run; and Spark's figures of a whole run."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_runs import CORES, METERS, START_WALL_NS, MadeUpRun, Record, reading, record, source_of
from spark_tables import column, facts_of_run, summarized, tables

from exchange.measurements import CLOCKS
from exchange.meters import Meter
from exchange.second_figures import PlacedMeters
from spark.summary import MEASURED, RATE, ROW_SCHEMA, as_table, rows_of_run
from tests.spark.conftest import Analysed

CPU = "gateway_cpu_cores"


def traffic(second: int, at_s: float, orders: int = 1, source: str = "gateway") -> Record:
    counts = {"orders_sent": orders, "orders_answered": orders, "messages_received": orders}
    return record("traffic", {"second": second, **counts}, source, at_s)


def cpu(second: int, cpu_s: float, at_s: float, source: str = "gateway") -> Record:
    rest = {"max_rss_bytes": 1, "voluntary_context_switches": 1, "involuntary_context_switches": 1}
    return record("process", {"second": second, "cpu_s": cpu_s, **rest}, source, at_s)


def test_there_is_one_row_a_second_in_order(analysed: Analysed) -> None:
    assert [row["second"] for row in analysed.seconds] == [0, 1, 2, 3, 4]


def test_a_second_has_its_own_traffic_and_the_run_their_sum(analysed: Analysed) -> None:
    assert [row["orders_sent"] for row in analysed.seconds] == [2_000, 2_000, 2_000, 2_000, 1]
    assert [row["orders_per_s"] for row in analysed.seconds] == [2_000.0, 2_000.0, 2_000.0, 2_000.0, None]
    assert analysed.run["orders_sent"] == 8_001
    assert analysed.run["messages_received"] == 16_002


def test_offered_and_achieved_rate_of_the_run_are_those_of_its_record(analysed: Analysed) -> None:
    assert analysed.run["offered_orders_per_s"] == 2_000.0
    assert analysed.run["orders_per_s"] == 1_998.0
    assert {row["offered_orders_per_s"] for row in analysed.seconds} == {2_000.0}


def test_the_row_of_a_run_has_its_name_status_and_transport(analysed: Analysed) -> None:
    assert analysed.run["run"] == analysed.folder.name
    assert analysed.run["status"] == "complete"
    assert analysed.run["transport"] == "zeromq"


@pytest.mark.parametrize("meter", METERS)
def test_a_meter_is_the_mean_of_its_readings_within_a_second(analysed: Analysed, meter: int) -> None:
    name = f"{Meter(meter).name.lower()}_per_s"
    means = []
    for second in range(4):
        first_half = reading(meter, second, 0.25)["rate_per_s"]
        second_half = reading(meter, second, 0.75)["rate_per_s"]
        means.append((first_half + second_half) / 2)
    assert [row[name] for row in analysed.seconds] == [*means, None]
    assert analysed.run[name] == sum(means) / 4


@pytest.mark.parametrize("source", CORES)
def test_cores_in_use_are_the_growth_of_cpu_time_per_second(analysed: Analysed, source: str) -> None:
    cores = [row[f"{source}_cpu_cores"] for row in analysed.seconds]
    assert cores[4] is None  # a quarter of a second
    assert cores[:4] == pytest.approx([CORES[source]] * 4, rel=0.002)
    assert analysed.run[f"{source}_cpu_cores"] == pytest.approx(CORES[source], rel=0.001)


def test_a_run_that_measured_nothing_has_one_row_of_nothing() -> None:
    (row,) = as_table(rows_of_run(facts_of_run(), ())).to_pylist()
    assert {name: value for name, value in row.items() if value is not None} == {
        "experiment": "a-trial",
        "run": "a-run",
        "status": "complete",
        "transport": "zeromq",
    }


def test_every_measured_figure_has_a_column() -> None:
    figures: set[str] = set()
    for row in rows_of_run(facts_of_run(), tables(MadeUpRun().records)):
        figures |= row.keys()
    assert figures <= set(ROW_SCHEMA.names)
    assert {RATE, *MEASURED} <= figures


def figures_of(row: dict[str, Any]) -> dict[str, float]:
    return {name: row[name] for name in ("second", RATE, *MEASURED) if row.get(name) is not None}


@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_neither_the_order_of_records_nor_their_files_matter(chance: random.Random, files: int) -> None:
    records = [
        *MadeUpRun(seconds=2, orders_per_s=10, pair=1).records,
        *MadeUpRun(seconds=2, orders_per_s=10, pair=2).records,
    ]
    run = facts_of_run(gateways=2, duration_s=2.25)
    rows = rows_of_run(run, tables(records))
    chance.shuffle(records)
    tables_of_files = []
    for file in range(files):
        tables_of_files += tables(records[file::files])
    rows_of_shuffled_records = rows_of_run(run, tables_of_files)
    assert len(rows) == 4
    for expected, row in zip(rows, rows_of_shuffled_records, strict=True):
        assert figures_of(row) == pytest.approx(figures_of(expected), rel=1e-12)


def test_the_figures_of_several_gateways_are_added() -> None:
    rows = summarized(
        traffic(0, 1.2),
        traffic(1, 2.2),
        traffic(0, 1.5, source="gateway.2"),
        traffic(1, 2.5, source="gateway.2"),
        cpu(0, 0.5, 1.0),
        cpu(0, 0.25, 1.0, source="gateway.2"),
    )
    assert column(rows, RATE) == {0: 2.0, 1: 2.0}
    assert column(rows, "orders_sent") == {0: 2, 1: 2, None: 4}
    assert column(rows, CPU)[0] == 0.75


def test_the_last_order_is_in_no_figure_of_completion(analysed: Analysed) -> None:
    assert all(analysed.seconds[4][f"{clock}_max_us"] is None for clock in CLOCKS)
    assert all(analysed.run[f"{clock}_max_us"] < 3_000_000 for clock in CLOCKS)


@pytest.mark.parametrize("gateways", [1, 2])
def test_the_warm_up_is_in_the_seconds_and_not_in_the_run(gateways: int) -> None:
    def one_order(second: int, last_order: bool = False) -> Record:
        head = {"second": second, "clock": "due", "last_order": last_order}
        buckets = {"bucket": [7], "bucket_count": [1], "count": 1, "sum_ns": 10, "min_ns": second, "max_ns": second}
        return record("completion", {**head, **buckets})

    records = [one_order(5), one_order(6), one_order(7), one_order(8, last_order=True)]
    rows = summarized(*records, warm_up_s=6.0, gateways=gateways)
    assert column(rows, "due_count") == {5: 1, 6: 1, 7: 1, None: 2}


def test_a_reading_is_in_the_second_by_the_gateway_s_clock() -> None:
    """Each reading's rate is the second of its time; readings before or after the run count to its ends."""
    readings = []
    for at_s in (-5.0, 0.5, 1.5, 2.2, 9.0):
        readings.append(record("throughput", {"meter": 3, "rate_per_s": at_s}, source_of(3), at_s))
    rows = summarized(traffic(0, 1.2), traffic(1, 2.01), traffic(2, 2.5), *readings)
    assert column(rows, "engine_messages_sent_per_s") == {
        0: (-5.0 + 0.5) / 2,
        1: 1.5,
        2: (2.2 + 9.0) / 2,
        None: 1.64,
    }


def test_meters_without_a_gateway_s_clock_are_in_no_row() -> None:
    readings = record("throughput", {"meter": 3, "rate_per_s": 1.0}, source_of(3), 0.5)
    assert column(summarized(readings, cpu(0, 0.5, 1.0)), "engine_messages_sent_per_s") == {}


@pytest.mark.parametrize(
    ("records", "start_s"),
    [
        ([(0, 1.2), (1, 2.01), (2, 2.5)], 0.01),  # the last second is not over when it is reported
        ([(0, 0.3)], -0.7),  # but where it is the only one, there is nothing better
    ],
)
def test_the_gateway_s_clock_started_before_its_earliest_report(
    records: list[tuple[int, float]], start_s: float
) -> None:
    meters = PlacedMeters()
    for second, at_s in records:
        meters.note_second_end("gateway", second, traffic(second, at_s)["wall_ns"])
    at_ns = START_WALL_NS + round(start_s * 1e9)
    edges = [{"meter": 1, "source": "gateway", "rate_per_s": 1.0, "wall_ns": at_ns + ns} for ns in (10**9 - 1, 10**9)]
    meters.place(edges)
    assert [meters.second_of(reading, last=9) for reading in edges] == [0, 1]


def test_cores_of_a_late_report_count_the_time_that_really_passed() -> None:
    found = column(summarized(cpu(0, 0.5, 1.0), cpu(3, 2.5, 5.0), cpu(4, 2.6, 5.1)), CPU)
    assert found == pytest.approx({0: 0.5, 3: 0.5, None: 2.6 / 5.1})  # a tenth of a second is too short to tell


def test_cores_of_a_run_within_its_first_second_are_over_its_own_length() -> None:
    assert column(summarized(cpu(0, 0.3, 0.6), duration_s=0.6), CPU) == pytest.approx({0: 0.5, None: 0.5})
    assert column(summarized(cpu(0, 0.1, 0.2), duration_s=0.2), CPU) == pytest.approx({None: 0.5})


@pytest.mark.parametrize(
    ("records", "duration_s", "rates"),
    [
        ([(0, 1.001, 8), (1, 2.001, 8), (2, 2.2, 2)], 2.2, {0: 8.0, 1: 8.0}),  # the end is too short to tell
        ([(0, 1.001, 8), (1, 1.801, 6)], 1.8, {0: 8.0, 1: 7.5}),  # over the part that there was
        ([(0, 1.001, 8), (1, 2.251, 10)], 2.25, {0: 8.0, 1: 8.0}),  # counted until it was reported, which was late
        ([(0, 1.001, 8), (3, 4.001, 24)], 4.0, {0: 8.0, 3: 8.0}),  # seconds in which the gateway could not speak
        ([(0, 0.8, 4)], 0.8, {0: 5.0}),
        ([(0, 0.8, 4)], None, {0: 4.0}),
    ],
)
def test_a_rate_is_over_the_time_that_was_counted(
    records: list[tuple[int, float, int]], duration_s: float | None, rates: dict[int, float]
) -> None:
    rows = summarized(*(traffic(second, at_s, orders) for second, at_s, orders in records), duration_s=duration_s)
    assert column(rows, RATE) == pytest.approx(rates)
