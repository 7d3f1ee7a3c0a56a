"""Spark's figures of buckets, against numpy's of the raw times."""

from __future__ import annotations

import numpy as np
import pytest
from spark_runs import Times, completion_payload, completion_times_ns, record
from spark_tables import column, summarized

from exchange.measurements import CLOCKS, LogBuckets
from exchange.percentiles import PERCENTS
from tests.spark.conftest import Analysed


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", PERCENTS)
def test_percentiles_of_run_and_seconds_agree_with_numpy_on_the_raw_times(
    analysed: Analysed, clock: str, name: str
) -> None:
    column = f"{clock}_{name}_us"
    quantile = float(f"0.{name.removeprefix('p')}")  # 99.9 / 100 is a little above 0.999, and of another rank

    def true_us(times_ns: Times) -> float:
        return float(np.quantile(times_ns, quantile, method="inverted_cdf") / 1e3)

    times_of_run = analysed.made_up.times_of_whole_seconds(clock)
    assert analysed.run[column] == pytest.approx(true_us(times_of_run), rel=0.003)
    for second, row in enumerate(analysed.seconds[:-1]):
        times_of_second = analysed.made_up.times_ns[clock, second]
        assert row[column] == pytest.approx(true_us(times_of_second), rel=0.003)


@pytest.mark.parametrize("clock", CLOCKS)
def test_count_mean_min_and_max_are_exact(analysed: Analysed, clock: str) -> None:
    times_ns = analysed.made_up.times_of_whole_seconds(clock)
    run = analysed.run
    assert run[f"{clock}_count"] == len(times_ns)
    assert run[f"{clock}_mean_us"] == times_ns.sum() / len(times_ns) / 1e3
    assert run[f"{clock}_min_us"] == times_ns.min() / 1e3
    assert run[f"{clock}_max_us"] == times_ns.max() / 1e3


@pytest.mark.parametrize("clock", CLOCKS)
def test_figures_are_those_of_the_log_buckets_themselves(analysed: Analysed, clock: str) -> None:
    merged = LogBuckets()
    for second in range(4):
        merged.merge(LogBuckets.of(analysed.made_up.times_ns[clock, second]))
    for name, value in merged.figures_us().items():
        column = name if name == "count" else f"{name}_us"
        assert analysed.run[f"{clock}_{column}"] == pytest.approx(value, rel=1e-14)


def test_records_of_several_gateways_merge() -> None:
    times_ns = completion_times_ns(np.random.default_rng(1), 1_000)
    first = record("completion", completion_payload(3, "due", times_ns[:10]))
    second = record("completion", completion_payload(3, "due", times_ns[10:]), source="gateway.2")
    of_two_gateways = summarized(first, second, gateways=2)
    of_one_gateway = summarized(record("completion", completion_payload(3, "due", times_ns)))
    assert of_two_gateways == of_one_gateway
    assert list(of_two_gateways) == [3, None]


def test_times_of_other_clocks_and_seconds_do_not_mix() -> None:
    records = []
    for second, time_ns in ((0, 10_000), (1, 100_000)):
        for clock in ("due", "lag"):
            records.append(record("completion", completion_payload(second, clock, np.array([time_ns]))))
    rows = summarized(*records)
    for clock in ("due", "lag"):
        assert column(rows, f"{clock}_max_us") == {0: 10.0, 1: 100.0, None: 100.0}
