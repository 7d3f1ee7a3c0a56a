"""Reads a run's spool back, for the figures that need no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from exchange.instances import instance_of
from exchange.json_records import Record, UnusableRecord, check, decode
from exchange.measurements import LogBuckets
from exchange.records import COMPLETION, PAYLOADS, SpoolRecord
from exchange.seconds import Once, is_analysed, merged_by
from runs.record.reading import damaged


def records(run_folder: Path) -> Iterator[Record]:
    """Yield every record once, in order of arrival. UserError at one that cannot be read."""
    once = Once()
    for path in sorted((run_folder / "spool").glob("[0-9]*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if not once.is_new(line):
                continue
            try:
                record = decode(line, SpoolRecord)
                if kind := PAYLOADS.get(record["kind"]):
                    check(record["payload"], kind)
            except UnusableRecord as error:
                raise damaged(f"{path}, line {number},", str(error)) from error
            yield record


def completion(run_folder: Path, warm_up_s: float) -> dict[int, dict[str, LogBuckets]]:
    """Buckets of the whole run by pair and clock, without the warm-up's seconds and the last order."""
    payloads = (
        ((instance_of(record["source"]), record["payload"]["clock"]), record["payload"])
        for record in records(run_folder)
        if record["kind"] == COMPLETION and is_analysed(record["payload"]) and record["payload"]["second"] >= warm_up_s
    )
    found: dict[int, dict[str, LogBuckets]] = {}
    for (pair, clock), buckets in merged_by(payloads).items():
        found.setdefault(pair, {})[clock] = buckets
    return found


def merged(parts: Iterable[dict[str, LogBuckets]]) -> dict[str, LogBuckets]:
    """The sum of all parts, by clock."""
    together: dict[str, LogBuckets] = {}
    for part in parts:
        for clock, buckets in part.items():
            together.setdefault(clock, LogBuckets()).merge(buckets)
    return together
