"""Summarizes a batch's records, and adds the summary to the facts of the run.

A summary is a few numbers a second of the run, whatever the rate. Completion times stay in the records' files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exchange.records import COMPLETION, END, PROCESS, THROUGHPUT, TRAFFIC
from exchange.second_figures import Facts
from spark.summary import Row

SMALL_KINDS = (TRAFFIC, PROCESS, THROUGHPUT)
RECORD_COLUMNS = [
    "source",
    "kind",
    "wall_ns",
    "monotonic_ns",
    "problem",
    "example",
    *SMALL_KINDS,
    "completion.second",
    "end",
]
"""The columns that a summary needs."""


@dataclass(frozen=True, kw_only=True)
class RecordsSummary:
    """The summary of some records, of a batch or of a file."""

    records: int
    unread: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By problem, the number of lines and the beginning of one."""
    facts: list[dict[str, Any]] = field(default_factory=list)
    """Payloads of SMALL_KINDS, with source, kind and time of their records."""
    completion_seconds: list[int] = field(default_factory=list)
    """The second of each record of completion times."""
    closed_reporters: set[str] = field(default_factory=set)
    """The reporters whose closing records these are."""
    reporter_count: int = 0
    """The number of the run's reporters, which a closing record has; 0 without a closing record."""

    @property
    def seconds(self) -> list[int]:
        """The second of each record that has one."""
        return self.completion_seconds + [fact["second"] for fact in self.facts if fact["kind"] != THROUGHPUT]


def summarize_records(records: pa.Table) -> RecordsSummary:
    """Summarize records, which have RECORD_COLUMNS."""
    unread = records.filter(pc.is_valid(records["problem"]))
    good = records.filter(pc.is_null(records["problem"]))
    completions = good.filter(pc.equal(good["kind"], COMPLETION))
    closing = good.filter(pc.equal(good["kind"], END)).select(["source", "end"]).to_pylist()
    return RecordsSummary(
        records=len(good),
        unread=_unread(unread),
        facts=list(_facts(good)),
        completion_seconds=sorted(pc.struct_field(completions[COMPLETION], "second").to_pylist()),
        closed_reporters={record["source"] for record in closing},
        reporter_count=max((record["end"]["reporters"] or 1 for record in closing), default=0),
    )


def _facts(good: pa.Table) -> Iterator[dict[str, Any]]:
    for kind in SMALL_KINDS:
        records = good.filter(pc.equal(good["kind"], kind))
        for record in records.select(["source", "kind", "wall_ns", "monotonic_ns", kind]).to_pylist():
            payload = record.pop(kind)
            yield {**payload, **record}


def _unread(bad: pa.Table) -> dict[str, tuple[int, str]]:
    counted = bad.group_by("problem").aggregate([("example", "count"), ("example", "min")]).to_pylist()
    return {row["problem"]: (row["example_count"], row["example_min"]) for row in counted}


class LiveFacts:
    """All figures of each second but its completion times, and the seconds that a batch changed."""

    def __init__(self) -> None:
        self._seconds: set[int] = set()
        self._closed_reporters: set[str] = set()
        self._reporter_count = 0
        self._facts = Facts()

    @property
    def ended(self) -> bool:
        """True if every reporter has closed its part."""
        return bool(self._closed_reporters) and len(self._closed_reporters) >= self._reporter_count

    def is_final(self, second: int) -> bool:
        """True if only a late record can change the second.

        That is so once all gateways that have reported so far have reported on a later one, or once all reporters have
        ended. The records of a gateway that begins to report later are late.
        """
        return self.ended or second < self._facts.open_from

    def take(self, batch: RecordsSummary) -> set[int]:
        """Add a batch; return the seconds whose row may have changed."""
        open_from_before = self._facts.open_from
        changed = self._facts.take(batch.facts)
        self._seconds |= set(batch.seconds)
        self._closed_reporters |= batch.closed_reporters
        self._reporter_count = max(self._reporter_count, batch.reporter_count)
        if changed is None:  # any row may have changed
            return set(self._seconds)
        # Seconds that were open before this batch may have become final, so their rows changed too.
        earliest_open = min(open_from_before, self._facts.open_from)
        maybe_closed = {second for second in self._seconds if second >= earliest_open}
        return (changed | set(batch.completion_seconds) | maybe_closed) & self._seconds

    def row(self, second: int) -> Row:
        """Return the second's counts, rates and CPU; a figure that is not known is absent."""
        return self._facts.row(second)
