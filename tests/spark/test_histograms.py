"""Histograms in tables, against the one that a gateway keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.measurements import LogBuckets
from exchange.percentiles import PERCENTS
from exchange.seconds import is_analysed
from spark.tables.histograms import EXACT, analysed, figures, merged_histograms

NAMES = ("run", "second")
SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("second", pa.int32()),
        *((name, pa.int64()) for name in EXACT),
        ("bucket", pa.list_(pa.int32())),
        ("bucket_count", pa.list_(pa.int64())),
    ]
)

Named = tuple[str, int, list[int]]
"""A run, a second, and times in ns."""
some_times = st.lists(st.integers(0, 1 << 46), min_size=1, max_size=20)
some_histograms = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-1, 1), some_times), max_size=12)


def table(histograms: list[Named]) -> pa.Table:
    rows = [{"run": run, "second": second, **LogBuckets.of(np.array(ns)).sparse()} for run, second, ns in histograms]
    return pa.Table.from_pylist(rows, SCHEMA)


def by_name(rows: pa.Table) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["run"], row["second"]): row for row in rows.to_pylist()}


@given(some_histograms)
def test_rows_with_the_same_names_merge_as_log_buckets_do(histograms: list[Named]) -> None:
    expected: dict[tuple[str, int], LogBuckets] = {}
    for run, second, ns in histograms:
        expected.setdefault((run, second), LogBuckets()).merge(LogBuckets.of(np.array(ns)))
    merged = by_name(merged_histograms(table(histograms), NAMES))
    assert merged.keys() == expected.keys()
    for name, row in merged.items():
        for field, value in expected[name].sparse().items():
            assert row[field] == np.asarray(value).tolist()


@given(some_histograms)
def test_figures_of_each_row_are_those_of_its_log_buckets(histograms: list[Named]) -> None:
    rows = figures(table(histograms), NAMES).to_pylist()
    for (run, second, ns), row in zip(histograms, rows, strict=True):
        expected = {"run": run, "second": second, "min_us": min(ns) / 1e3}
        for name, value in LogBuckets.of(np.array(ns)).figures_us().items():
            expected[name if name == "count" else f"{name}_us"] = value
        assert row == expected


def test_merging_merged_parts_gives_the_same_as_merging_all_rows() -> None:
    histograms = [("a", 0, [5, 9]), ("b", 0, [7]), ("a", 0, [5]), ("a", 1, [80_000])]
    first_part = merged_histograms(table(histograms[:2]), NAMES)
    second_part = merged_histograms(table(histograms[2:]), NAMES)
    of_parts = merged_histograms(pa.concat_tables([first_part, second_part]), NAMES)
    of_all_rows = merged_histograms(table(histograms), NAMES)
    assert by_name(of_parts) == by_name(of_all_rows)


def test_a_rank_is_rounded_up() -> None:
    (row,) = figures(table([("a", 0, [10**n for n in range(3, 8)])]), NAMES).to_pylist()
    assert [row[f"{name}_us"] for name in ("p50", "p90", "p99", "p999")] == pytest.approx(
        [100, 10_000, 10_000, 10_000], rel=0.003
    )


@pytest.mark.parametrize("lone_ns", [1 << 20, int(2 ** (20 + 1 / 128))])
def test_a_percentile_never_leaves_the_exact_minimum_and_maximum(lone_ns: int) -> None:
    """The first value is below its bucket's middle, the second above."""
    (row,) = figures(table([("a", 0, [lone_ns])]), NAMES).to_pylist()
    assert [row[f"{name}_us"] for name in PERCENTS] == [lone_ns / 1e3] * len(PERCENTS)


def test_a_table_s_records_are_analysed_as_single_payloads_are() -> None:
    payloads = [{"count": count, "last_order": last_order} for count in (0, 1, 9) for last_order in (False, True)]
    assert analysed(pa.Table.from_pylist(payloads)).to_pylist() == [is_analysed(payload) for payload in payloads]
