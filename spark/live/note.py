"""What one batch added, as a small file: all that later batches need to know of it without its records.

A few numbers a second of the run, whatever the rate; completion times stay in the records' file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.compute as pc

from exchange.records import COMPLETION, END, PROCESS, THROUGHPUT, TRAFFIC
from spark.live.columns import read_columns

MOMENT_NS = 50_000_000
SMALL_KINDS = (TRAFFIC, PROCESS, THROUGHPUT)


@dataclass(frozen=True, kw_only=True)
class Note:
    """Facts are the payloads of records, beside when and by whom they were said."""

    batch_id: int
    lines: int
    records: int
    late: int = 0
    unread: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By problem: how many lines, and the beginning of one."""
    facts: list[dict[str, Any]] = field(default_factory=list)
    timed: list[int] = field(default_factory=list)
    """The second of each record of completion times."""
    moments: list[int] = field(default_factory=list)
    """When its records were said, in steps of MOMENT_NS: only batches that share one can share a record."""
    ends: dict[str, int] = field(default_factory=dict)
    """By reporter that closed its part, how many reporters the run has."""

    @property
    def unread_lines(self) -> int:
        return sum(lines for lines, _ in self.unread.values())

    @property
    def duplicates(self) -> int:
        return self.lines - self.records - self.unread_lines

    @property
    def seconds(self) -> list[int]:
        """The second of each record that has one."""
        return self.timed + [fact["second"] for fact in self.facts if fact["kind"] != THROUGHPUT]

    def encoded(self) -> bytes:
        return orjson.dumps(asdict(self))


def read_note(file: Path) -> Note:
    """ValueError, TypeError or KeyError where it is none."""
    said = orjson.loads(file.read_bytes())
    said["unread"] = {problem: (lines, example) for problem, (lines, example) in said["unread"].items()}
    return Note(**said)


@dataclass(frozen=True)
class Said:
    """What a batch's records are, and when they were said."""

    lines: int
    identities: npt.NDArray[np.int64]
    moments: frozenset[int]

    @property
    def has_twice(self) -> bool:
        return len(np.unique(self.identities)) < len(self.identities)

    def shares_any(self, other: Said) -> bool:
        return bool(np.isin(self.identities, other.identities).any())


def said_in(file: Path) -> Said:
    """Lines that cannot be read are nobody's records, and count as lines only."""
    table = read_columns(file, "wall_ns", "identity", "problem")
    good = table.filter(pc.is_null(table["problem"]))
    moments = np.unique(good["wall_ns"].to_numpy() // MOMENT_NS)
    return Said(len(table), good["identity"].to_numpy(), frozenset(moments.tolist()))


def note_of(file: Path, batch_id: int, said: Said) -> Note:
    """What is noted of a batch, of which this file holds the records that had not been said before."""
    columns = ["source", "kind", "wall_ns", "monotonic_ns", "problem", "example", *SMALL_KINDS]
    table = read_columns(file, *columns, "completion.second", "end.reporters")
    unread = table.filter(pc.is_valid(table["problem"]))
    good = table.filter(pc.is_null(table["problem"]))
    timed = good.filter(pc.equal(good["kind"], COMPLETION)).column("completion").to_pylist()
    return Note(
        batch_id=batch_id,
        lines=said.lines,
        records=len(good),
        unread=_unread(unread),
        facts=list(_facts(good)),
        timed=sorted(payload["second"] for payload in timed),
        moments=sorted(said.moments),
        ends=_ends(good),
    )


def _ends(good: Any) -> dict[str, int]:
    closing = good.filter(pc.equal(good["kind"], END)).select(["source", "end"]).to_pylist()
    return {said["source"]: said["end"]["reporters"] or 1 for said in closing}


def _facts(good: Any) -> Iterator[dict[str, Any]]:
    for kind in SMALL_KINDS:
        of_kind = good.filter(pc.equal(good["kind"], kind))
        for said in of_kind.select(["source", "kind", "wall_ns", "monotonic_ns", kind]).to_pylist():
            yield {**said.pop(kind), **said}


def _unread(bad: Any) -> dict[str, tuple[int, str]]:
    counted = bad.group_by("problem").aggregate([("example", "count"), ("example", "min")]).to_pylist()
    return {row["problem"]: (row["example_count"], row["example_min"]) for row in counted}
