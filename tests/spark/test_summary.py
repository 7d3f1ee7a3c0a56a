from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_frames import RUN, completion, lasting, runs, table
from spark_runs import CORES, METERS, START_WALL_NS, Record, reading, record, source_of

from exchange.measurements import CLOCKS, Meter
from spark.schemas import BUCKETED, KEYS, KINDS, dataset_schema
from spark.summary import cpu_facts, gateway_clocks, meter_facts, rate_facts, summarize_tables, time_facts
from tests.spark.conftest import Analysed


def traffic(second: int, at_s: float) -> Record:
    counts = {"orders_sent": 1, "orders_answered": 1, "messages_received": 1}
    return record("traffic", {"second": second, **counts}, at_s=at_s)


def cpu(second: int, cpu_s: float, at_s: float) -> Record:
    rest = {"max_rss_bytes": 1, "voluntary_context_switches": 1, "involuntary_context_switches": 1}
    return record("process", {"second": second, "cpu_s": cpu_s, **rest}, at_s=at_s)


def values(facts: DataFrame) -> dict[tuple[int | None, str], float]:
    return {
        (row.second, row.name): row.value
        for row in facts.select("second", facts["name"].alias("name"), "value").collect()
    }


def test_there_is_one_row_a_second_in_order(analysed: Analysed) -> None:
    assert [row["second"] for row in analysed.seconds] == [0, 1, 2, 3, 4]


def test_a_second_has_its_own_traffic_and_the_run_their_sum(analysed: Analysed) -> None:
    assert [row["orders_sent"] for row in analysed.seconds] == [2_000] * 4 + [1]
    assert [row["orders_per_s"] for row in analysed.seconds] == [2_000.0] * 4 + [None]
    assert (analysed.run["orders_sent"], analysed.run["messages_received"]) == (8_001, 16_002)


def test_offered_and_achieved_rate_of_the_run_are_those_of_its_record(analysed: Analysed) -> None:
    assert (analysed.run["offered_orders_per_s"], analysed.run["orders_per_s"]) == (2_000.0, 1_998.0)
    assert {row["offered_orders_per_s"] for row in analysed.seconds} == {2_000.0}


def test_a_row_says_which_run_it_is_of(analysed: Analysed) -> None:
    assert [analysed.run[name] for name in ("run", "status", "transport")] == [
        analysed.folder.name,
        "complete",
        "zeromq",
    ]


@pytest.mark.parametrize("meter", METERS)
def test_a_meter_is_the_mean_of_its_readings_within_a_second(analysed: Analysed, meter: int) -> None:
    name = f"{Meter(meter).name.lower()}_per_s"
    means = [sum(reading(meter, second, half)["rate_per_s"] for half in (0.25, 0.75)) / 2 for second in range(4)]
    assert [row[name] for row in analysed.seconds] == [*means, None]
    assert analysed.run[name] == sum(means) / 4


@pytest.mark.parametrize("source", CORES)
def test_cores_in_use_are_what_cpu_time_grew_by(analysed: Analysed, source: str) -> None:
    cores = [row[f"{source}_cpu_cores"] for row in analysed.seconds]
    assert cores[4] is None  # a quarter of a second
    assert cores[:4] == pytest.approx([CORES[source]] * 4, rel=0.002)
    assert analysed.run[f"{source}_cpu_cores"] == pytest.approx(CORES[source], rel=0.001)


def nothing(spark: SparkSession) -> dict[str, DataFrame]:
    tables = {kind: spark.createDataFrame([], dataset_schema(kind)) for kind in KINDS if kind != BUCKETED}
    return {kind: lasting(table, None) for kind, table in {**tables, BUCKETED: completion(spark)}.items()}


def test_a_run_that_measured_nothing_has_one_row_of_nothing(spark: SparkSession) -> None:
    (row,) = summarize_tables(nothing(spark), runs(spark)).collect()
    assert set(row) == {*RUN, None}


@pytest.mark.jvm
def test_runs_are_summarized_side_by_side_as_each_by_itself(spark: SparkSession) -> None:
    first, second = ("a-trial", "first"), ("a-trial", "second")
    said = {first: [traffic(0, 1.2), traffic(1, 2.2)], second: [traffic(0, 1.7)]}
    used = {first: [cpu(0, 0.5, 1.0), cpu(1, 1.5, 2.0)], second: [cpu(0, 0.25, 1.0)]}
    empty = nothing(spark)

    def rows(*names: tuple[str, str]) -> list[Any]:
        tables = {"traffic": said, "process": used}
        of_kinds = {
            kind: lasting(reduce(DataFrame.unionAll, [table(spark, *of_run[n], run=n) for n in names]), None)
            for kind, of_run in tables.items()
        }
        found = summarize_tables({**empty, **of_kinds}, runs(spark, *names))
        return sorted(map(tuple, found.collect()), key=str)

    assert rows(first, second) == sorted([*rows(first), *rows(second)], key=str)


def test_several_gateways_of_a_run_add_up(spark: SparkSession) -> None:
    second_one = [{**said, "source": "gateway.2"} for said in (traffic(0, 1.5), traffic(1, 2.5))]
    told = table(spark, traffic(0, 1.2), traffic(1, 2.2), *second_one)
    assert values(rate_facts(lasting(told, None))) == {(0, "orders_per_s"): 2.0, (1, "orders_per_s"): 2.0}
    used = table(spark, cpu(0, 0.5, 1.0), {**cpu(0, 0.25, 1.0), "source": "gateway.2"})
    assert values(cpu_facts(lasting(used, None)))[0, "gateway_cpu_cores"] == 0.75


def test_the_last_order_is_in_no_figure_of_completion(analysed: Analysed) -> None:
    assert all(analysed.seconds[4][f"{clock}_max_us"] is None for clock in CLOCKS)
    assert all(analysed.run[f"{clock}_max_us"] < 3_000_000 for clock in CLOCKS)


def test_the_warm_up_is_left_out_of_the_run_and_kept_in_its_seconds(spark: SparkSession) -> None:
    def times(second: int, last: bool = False) -> Record:
        about = {"second": second, "clock": "due", "last_order": last, "bucket": [7], "bucket_count": [1]}
        return record("completion", {**about, "count": 1, "sum_ns": 10, "min_ns": second, "max_ns": second})

    said = completion(spark, times(5), times(6), times(7), times(8, last=True))
    facts = values(time_facts(lasting(said, None, warm_up_s=6.0)))
    counts = {second: value for (second, name), value in facts.items() if name == "due_count"}
    assert counts == {5: 1, 6: 1, 7: 1, None: 2}


def test_a_meter_is_placed_by_the_gateway_s_first_second(spark: SparkSession) -> None:
    clocks = gateway_clocks(table(spark, traffic(0, 1.2), traffic(1, 2.01), traffic(2, 2.5)))
    at_s = {-5.0: 0, 0.5: 0, 1.5: 1, 2.2: 2, 9.0: 2}
    said = [record("throughput", {"meter": 3, "rate_per_s": rate}, source_of(3), rate) for rate in at_s]
    facts = values(meter_facts(table(spark, *said).crossJoin(clocks.drop(*KEYS))))
    name = "engine_messages_sent_per_s"
    assert facts == {(0, name): -2.25, (1, name): 1.5, (2, name): 5.6, (None, name): 1.64}


@pytest.mark.parametrize(
    ("records", "start_s"),
    [
        ([(0, 1.2), (1, 2.01), (2, 2.5)], 0.01),  # the last second is not over when it is reported
        ([(0, 0.3)], -0.7),  # but where it is the only one, there is nothing better
    ],
)
def test_the_gateway_s_clock_started_before_its_earliest_report(
    spark: SparkSession, records: list[tuple[int, float]], start_s: float
) -> None:
    (clock,) = gateway_clocks(table(spark, *(traffic(*said) for said in records))).collect()
    assert clock.start_wall_ns - START_WALL_NS == round(start_s * 1e9)
    assert clock.last_second == records[-1][0]


def test_cores_of_a_late_report_count_the_time_that_really_passed(spark: SparkSession) -> None:
    reports: list[Any] = [cpu(0, 0.5, 1.0), cpu(3, 2.5, 5.0), cpu(4, 2.6, 5.1)]
    facts = values(cpu_facts(lasting(table(spark, *reports), None)))
    name = "gateway_cpu_cores"
    assert facts.pop((4, name)) is None  # a tenth of a second is too short to tell
    assert facts == pytest.approx({(0, name): 0.5, (3, name): 0.5, (None, name): 2.6 / 5.1})


def test_cores_of_a_run_within_its_first_second_are_over_its_own_length(spark: SparkSession) -> None:
    name = "gateway_cpu_cores"
    long = values(cpu_facts(lasting(table(spark, cpu(0, 0.3, 0.6)), 0.6)))
    assert long == pytest.approx({(0, name): 0.5, (None, name): 0.5})
    short = values(cpu_facts(lasting(table(spark, cpu(0, 0.1, 0.2)), 0.2)))
    assert short == {(0, name): None, (None, name): 0.5}


@pytest.mark.parametrize(
    ("records", "duration_s", "rates"),
    [
        ([(0, 1.001, 8), (1, 2.003, 8), (2, 2.2, 2)], 2.2, [8.0, 8.0, None]),  # the end is too short to tell
        ([(0, 1.001, 8), (1, 1.801, 6)], 1.8, [8.0, 7.5]),  # over the part that there was
        ([(0, 1.001, 8), (1, 2.004, 8)], 2.0, [8.0, 8.0]),  # a late report makes no second longer
        ([(0, 0.8, 4)], 0.8, [5.0]),
        ([(0, 0.8, 4)], None, [4.0]),
    ],
)
def test_the_rate_of_the_last_second_is_over_its_own_length(
    spark: SparkSession, records: list[tuple[int, float, int]], duration_s: float | None, rates: list[float | None]
) -> None:
    counts = [{"second": s, "orders_sent": n, "orders_answered": n, "messages_received": n} for s, _, n in records]
    told = [record("traffic", count, at_s=at_s) for count, (_, at_s, _) in zip(counts, records, strict=True)]
    facts = values(rate_facts(lasting(table(spark, *told), duration_s)))
    assert [facts[second, "orders_per_s"] for second, _, _ in records] == pytest.approx(rates)
