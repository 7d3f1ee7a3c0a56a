"""A benchmark's folder, in which its record grows, and reading the record back."""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from exchange.json_records import BenchRecord, Record
from exchange.words import counted
from exchange_simulation.launching.files import new_run_folder, write_json
from exchange_simulation.launching.record.reading import read_record
from exchange_simulation.messaging.benchmark import MAX, RATE, Column
from exchange_simulation.messaging.benchmarks import benchmark_of

FILE = "bench.json"
FROM_DUE = "due_p50_us"
LEAST_REPEATS = 5
"""The interval of fewer repeats is their range, which holds the true median in 50 % (of two) to 88 % (of four)."""
SHARE, MOST_S = 0.02, 10.0
"""The largest share of time spent on writing the growing record, and the longest time that a kill loses."""


class ResultsFolder:
    """`results`/`name`, from the first measurement on: a benchmark that ends before leaves nothing."""

    def __init__(self, results: Path, name: str) -> None:
        """UserError if no such folder can be made. It is made once there is a record to write."""
        self.folder = new_run_folder(results, name)
        self.folder.rmdir()
        self._results, self._again_s = results, 0.0

    def write_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write the record as it is so far, unless that was done just now."""
        began_s = time.monotonic()
        if began_s >= self._again_s:
            self.write(record())
            self._again_s = time.monotonic() + min((time.monotonic() - began_s) / SHARE, MOST_S)

    def write(self, record: Record) -> None:
        is_new = not self.folder.exists()
        if is_new:
            new_run_folder(self._results, self.folder.name)
        try:
            write_json(self.folder / FILE, record)
        except click.ClickException:
            if is_new:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


def read(folder: Path) -> Record:
    """Read a folder's bench.json back."""
    return read_record(folder / FILE, BenchRecord)


class _Both(NamedTuple):
    """The main figure of one point, over two transports."""

    benchmark: str
    is_rate: bool
    first: Record
    second: Record

    @property
    def ratio(self) -> float:
        return float(self.first["median"] / self.second["median"])

    @property
    def ends(self) -> list[Any]:
        """The ends of both intervals; None where there are too few repeats for one."""
        both = (self.first, self.second)
        if min(each.get("n", LEAST_REPEATS) for each in both) < LEAST_REPEATS:
            return [None]
        return [each[end] for each in both for end in ("low", "high")]

    @property
    def is_apart(self) -> bool:
        """The two intervals do not overlap."""
        ends = self.ends
        return None not in ends and (ends[0] > ends[3] or ends[1] < ends[2])


def main_column(record: Mapping[str, Any]) -> Column:
    """The first column with an interval; if each row has a rate, the time from due, since the rate was given."""
    columns, rows = [each for each in benchmark_of(record["benchmark"]).columns if each.with_interval], record["rows"]
    is_timed = any(FROM_DUE in row["figures"] for row in rows) and all(map(_is_paced, rows))
    return next(column for column in columns if not is_timed or column.name == FROM_DUE)


def _is_paced(row: Mapping[str, Any]) -> bool:
    return row["point"].get(RATE, MAX) != MAX


def answer(records: Sequence[Mapping[str, Any]]) -> str:
    """How far two transports are apart over all points that both have; the pair with most of them. Empty without one.

    zeromq's rates are 6.2 to 33 times amqp's (40 points of 8 benchmarks). The 95 % intervals ... at 38 of 40 points.
    """
    names = sorted({row["transport"] for record in records for row in record["rows"]})
    found = {
        pair: [both for each in records for both in _both(each, *pair)] for pair in itertools.permutations(names, 2)
    }
    if not any(found.values()):
        return ""
    (first, second), points = max(found.items(), key=lambda each: (len(each[1]), _advantage(each[1])))
    parts = [
        _times(f"{first}'s {kind} are", f"times {second}'s", [each for each in points if each.is_rate is is_rate])
        for kind, is_rate in (("rates", True), ("times", False))
    ]
    ratios, apart = "; ".join(filter(None, parts)), sum(point.is_apart for point in points)
    if all(None in point.ends for point in points):
        return f"{ratios}."
    return f"{ratios}. The 95 % intervals of the two are apart at {apart} of {counted(len(points), 'points')}."


def _both(record: Mapping[str, Any], first: str, second: str) -> Iterator[_Both]:
    name = main_column(record).name
    rows = [row for row in record["rows"] if name == FROM_DUE or not _is_paced(row)]
    estimates = {(row["transport"], str(row["point"])): row["figures"].get(name) for row in rows}
    for (transport, point), estimate in estimates.items():
        other = estimates.get((second, point))
        if transport == first and estimate and other and estimate["median"] and other["median"]:
            yield _Both(record["benchmark"], name.endswith("_per_s"), estimate, other)


def _advantage(points: Sequence[_Both]) -> float:
    """Positive if the first transport of the pair has the higher rates, and the shorter times."""
    return sum(math.log(point.ratio) * (1 if point.is_rate else -1) for point in points)


def _times(head: str, tail: str, points: Sequence[_Both]) -> str:
    """zeromq's rates are 6.2 to 33 times amqp's (40 points of 8 benchmarks)"""
    if not points:
        return ""
    ends = (min(p.ratio for p in points), max(p.ratio for p in points))
    ratios = dict.fromkeys(f"{float(f'{ratio:.2g}'):g}" for ratio in ends)
    of = Counter(point.benchmark for point in points)
    where = counted(len(points), "points") + (f" of {counted(len(of), 'benchmarks')}" if len(of) > 1 else "")
    return f"{head} {' to '.join(ratios)} {tail} ({where})"
