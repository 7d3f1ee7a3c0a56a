"""Spark's figures of buckets, against numpy's of the raw times."""

from __future__ import annotations

import numpy as np
import pytest
from spark_runs import buckets_of, completion_payload, completion_times_ns, record
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
    measured = [analysed.run[column], *(row[column] for row in analysed.seconds[:-1])]
    times = [analysed.made_up.whole(clock), *(analysed.made_up.times_ns[clock, s] for s in range(4))]
    true = [np.quantile(ns, float(f"0.{name[1:]}"), method="inverted_cdf") / 1e3 for ns in times]
    assert measured == pytest.approx(true, rel=0.003)


@pytest.mark.parametrize("clock", CLOCKS)
def test_count_mean_min_and_max_are_exact(analysed: Analysed, clock: str) -> None:
    times = analysed.made_up.whole(clock)
    exact = (len(times), times.sum() / len(times) / 1e3, times.min() / 1e3, times.max() / 1e3)
    assert tuple(analysed.run[f"{clock}_{figure}"] for figure in ("count", "mean_us", "min_us", "max_us")) == exact


@pytest.mark.parametrize("clock", CLOCKS)
def test_figures_are_those_of_the_log_buckets_themselves(analysed: Analysed, clock: str) -> None:
    merged = LogBuckets()
    for second in range(4):
        merged.merge(buckets_of(analysed.made_up.times_ns[clock, second]))
    expected = merged.figures_us()
    names = {name: name if name == "count" else f"{name}_us" for name in expected}
    assert {name: analysed.run[f"{clock}_{column}"] for name, column in names.items()} == pytest.approx(
        expected, rel=1e-14
    )


def test_records_of_several_gateways_merge() -> None:
    times = completion_times_ns(np.random.default_rng(1), 1_000)
    parts = [record("completion", completion_payload(3, "due", part)) for part in (times[:10], times[10:])]
    together = summarized(parts[0], {**parts[1], "source": "gateway.2"}, gateways=2)
    assert together == summarized(record("completion", completion_payload(3, "due", times)))
    assert list(together) == [3, None]


def test_clocks_and_seconds_stay_apart() -> None:
    times_ns = {(s, c): np.array([10 ** (s + 4)]) for s in (0, 1) for c in ("due", "lag")}
    rows = summarized(*(record("completion", completion_payload(*of, ns)) for of, ns in times_ns.items()))
    for clock in ("due", "lag"):
        assert column(rows, f"{clock}_max_us") == {0: 10.0, 1: 100.0, None: 100.0}
