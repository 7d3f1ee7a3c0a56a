"""Histograms in tables, against the one that a gateway keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_runs import buckets_of

from exchange.measurements import LogBuckets
from exchange.percentiles import PERCENTS
from spark.tables.histograms import EXACT, figures, merged_histograms

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
some_times = st.lists(st.integers(0, 1 << 46), min_size=1, max_size=20)
some_histograms = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-1, 1), some_times), max_size=12)


def table(histograms: list[Named]) -> pa.Table:
    rows = [{"run": run, "second": second, **buckets_of(np.array(ns)).sparse()} for run, second, ns in histograms]
    return pa.Table.from_pylist(rows, SCHEMA)


def by_name(rows: pa.Table) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["run"], row["second"]): row for row in rows.to_pylist()}


@given(some_histograms)
def test_what_has_the_same_names_is_added_as_log_buckets_add(histograms: list[Named]) -> None:
    expected: dict[tuple[str, int], LogBuckets] = {}
    for run, second, ns in histograms:
        expected.setdefault((run, second), LogBuckets()).merge(buckets_of(np.array(ns)))
    found = by_name(merged_histograms(table(histograms), NAMES))
    assert found.keys() == expected.keys()
    for name, row in found.items():
        histogram = {key: value for key, value in row.items() if key not in NAMES}
        assert histogram == {key: np.asarray(value).tolist() for key, value in expected[name].sparse().items()}


@given(some_histograms)
def test_figures_of_each_row_are_those_of_its_log_buckets(histograms: list[Named]) -> None:
    found = figures(table(histograms), NAMES).to_pylist()
    for (run, second, ns), row in zip(histograms, found, strict=True):
        expected = {
            name if name == "count" else f"{name}_us": v for name, v in buckets_of(np.array(ns)).figures_us().items()
        }
        assert row == {"run": run, "second": second, "min_us": min(ns) / 1e3, **expected}


def test_adding_by_parts_is_adding_at_once() -> None:
    histograms = [("a", 0, [5, 9]), ("b", 0, [7]), ("a", 0, [5]), ("a", 1, [80_000])]
    parts = pa.concat_tables([merged_histograms(table(part), NAMES) for part in (histograms[:2], histograms[2:])])
    assert by_name(merged_histograms(parts, NAMES)) == by_name(merged_histograms(table(histograms), NAMES))


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
