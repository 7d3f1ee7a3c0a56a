"""Log buckets of many rows in numpy: add the histograms that belong together, and take their figures.

A histogram is a row: columns that name what it is of, EXACT, its buckets that are not empty, and their counts. These
functions do with a batch of rows at once what exchange.measurements.LogBuckets does with one histogram.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exchange.measurements import BUCKETS, bucket_middle_ns, rank_of
from exchange.percentiles import PERCENTS

TIME_FIGURES = ("count", "mean_us", "min_us", *(f"{name}_us" for name in PERCENTS), "max_us")
EXACT = {"count": "sum", "sum_ns": "sum", "min_ns": "min", "max_ns": "max"}
"""Columns that stay exact, and the function by which Arrow merges them."""
OF_SECOND = ("second", "clock")
"""The names of a histogram of one second's completion times."""
OF_RUN = ("clock",)
"""The names of a histogram of a whole run's completion times."""
NS_PER_US = 1e3

Integers = npt.NDArray[np.int64]


def analysed(completions: pa.Table) -> pa.ChunkedArray:
    """Return which of these completion records figures include: what `exchange.seconds.is_analysed` says of each."""
    return pc.and_(pc.invert(completions["last_order"]), pc.greater(completions["count"], 0))


def merged_histograms(histograms: pa.Table, names: Sequence[str]) -> pa.Table:
    """Add rows with the same names: (*names, *EXACT, bucket, bucket_count), a row each, buckets sorted."""
    first, group = _groups(histograms, names)
    bucket, counts, lengths = _buckets(histograms)
    keys, counts = _sums(np.repeat(group, lengths) * BUCKETS + bucket, counts, len(first) * BUCKETS)
    offsets = np.searchsorted(keys, np.arange(len(first) + 1) * BUCKETS).astype(np.int32)
    exact = histograms.select(list(EXACT)).append_column("group", pa.array(group))
    merged = exact.group_by("group", use_threads=False).aggregate(list(EXACT.items())).sort_by("group")
    columns = {name: histograms[name].take(pa.array(first)) for name in names}
    columns |= {name: merged[f"{name}_{aggregate}"] for name, aggregate in EXACT.items()}
    columns["bucket"] = pa.ListArray.from_arrays(offsets, pa.array((keys % BUCKETS).astype(np.int32)))
    columns["bucket_count"] = pa.ListArray.from_arrays(offsets, pa.array(counts))
    return pa.table(columns)


def figures(histograms: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return (*names, *TIME_FIGURES) of rows with sorted buckets, in us.

    Percentiles are numpy's inverted_cdf of bucket middles.
    """
    count = histograms["count"].to_numpy()
    sum_ns = histograms["sum_ns"].to_numpy()
    min_ns = histograms["min_ns"].to_numpy()
    max_ns = histograms["max_ns"].to_numpy()
    bucket, counts, lengths = _buckets(histograms)
    # The histograms stand one after another: `cumulated` counts through all, from the first bucket of the first row.
    cumulated = np.cumsum(counts)
    first_buckets = np.cumsum(lengths) - lengths
    count_of_earlier_rows = np.concatenate([[0], cumulated])[first_buckets]
    columns = {"count": count, "mean_us": sum_ns / count / NS_PER_US, "min_us": min_ns / NS_PER_US}
    for name, percent in PERCENTS.items():
        place = np.searchsorted(cumulated, count_of_earlier_rows + rank_of(percent, count))
        middle_ns = bucket_middle_ns(bucket[place])
        columns[f"{name}_us"] = np.clip(middle_ns, min_ns, max_ns) / NS_PER_US
    columns["max_us"] = max_ns / NS_PER_US
    return pa.table({name: histograms[name] for name in names} | columns)


def figures_by_second(tables: Iterable[pa.Table]) -> dict[int, dict[str, Any]]:
    """Return `figures_by_clock` of each second, from tables of `figures` with the names OF_SECOND."""
    rows_of_second: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for table in tables:
        for row in table.to_pylist():
            rows_of_second[row["second"]].append(row)
    return {second: figures_by_clock(rows) for second, rows in rows_of_second.items()}


def figures_by_clock(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the TIME_FIGURES of a row for each clock, by names that begin with the clock, such as due_p50_us."""
    by_name = {}
    for row in rows:
        for figure in TIME_FIGURES:
            by_name[f"{row['clock']}_{figure}"] = row[figure]
    return by_name


def _groups(rows: pa.Table, names: Sequence[str]) -> tuple[Integers, Integers]:
    """Group rows with the same names: (the first row of each group, the group of each row)."""
    code = np.zeros(len(rows), np.int64)
    for name in names:
        values = rows[name].combine_chunks().dictionary_encode()
        code = code * len(values.dictionary) + values.indices.to_numpy()
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return first, group


def _buckets(histograms: pa.Table) -> tuple[Integers, Integers, Integers]:
    """Return the buckets and counts of all rows one after another, and the number of buckets in each row."""
    bucket = histograms["bucket"].combine_chunks()
    counts = histograms["bucket_count"].combine_chunks()
    lengths = pc.list_value_length(bucket).to_numpy().astype(np.int64)
    return bucket.flatten().to_numpy().astype(np.int64), counts.flatten().to_numpy(), lengths


def _sums(keys: Integers, values: Integers, end: int) -> tuple[Integers, Integers]:
    """Return each key once, sorted, and the sum of its values. Keys are from 0 on and below `end`."""
    if end <= len(keys):
        # An array of all keys is no larger than the values, and adding into it is quicker than sorting them. Sums are
        # floats here, which are exact below 2^53.
        sums_of_all = np.bincount(keys, values, minlength=end).astype(np.int64)
        present = np.flatnonzero(np.bincount(keys, minlength=end))
        return present, sums_of_all[present]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sums: Integers = np.add.reduceat(values[order], starts) if len(starts) else values[:0]
    return ordered[starts], sums
