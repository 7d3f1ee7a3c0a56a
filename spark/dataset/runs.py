"""The table of runs: the facts of each run.json that was ingested, and the number of the file with the run's rows.

Tables that an older version made are refused here, since they would be read wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from spark.dataset.folder import DatasetFolder, TablesFolder
from spark.errors import DatasetUnreadableError
from spark.run_facts import PAPER_FIGURES, RunFacts
from spark.tables.schemas import TIMESTAMP, WORDS, experiment_and_part

RUNS = "runs"
RUNS_A_FILE = 1024
SPOOL_BYTES_A_FILE = 1 << 28
"""A new run goes into the first file of its experiment that has room, and stays there: few files are rewritten, and
none grows too large. A file has room until it holds the rows of this many runs, or of spools of this many bytes."""

TYPES = {
    "status": pa.string(),
    "transport": pa.string(),
    "arm": pa.string(),
    "gateways": pa.int32(),
    "is_steady": pa.bool_(),
    "seed": pa.int64(),
    "started_at": TIMESTAMP,
    "packing": pa.int32(),
    "policy": pa.string(),
    "version": pa.string(),
    "host": WORDS,
    "settings": WORDS,
}
"""The types of columns; the others are of float64."""
RUN_FIELDS = [field.name for field in fields(RunFacts) if field.name not in ("experiment", "run", "paper_figures")]
RUNS_SCHEMA = pa.schema(
    [
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("run", pa.string(), nullable=False),
        pa.field("fingerprint", pa.string(), nullable=False),
        *(pa.field(name, TYPES.get(name, pa.float64())) for name in (*RUN_FIELDS, *PAPER_FIGURES)),
        pa.field("has_events", pa.bool_(), nullable=False),
        pa.field("spool_bytes", pa.int64(), nullable=False),
    ]
)

NEWEST_COLUMNS = {"runs": "settings", "orders": "kind"}
"""By table, a column that tables of older versions lack."""

Name = tuple[str, str]
"""A run's experiment and its own name."""


@dataclass(frozen=True, kw_only=True)
class IngestedRun:
    """A run that is in the tables."""

    facts: RunFacts
    fingerprint: str
    """That of the run.json that was read."""
    part: int
    """The number N of the files part-N.parquet that hold the run's rows."""
    spool_bytes: int = 0
    has_events: bool = False
    """Whether the tables of events have its rows, too."""

    @property
    def name(self) -> Name:
        return self.facts.experiment, self.facts.run

    def row(self) -> dict[str, Any]:
        """Return a row of RUNS_SCHEMA."""
        row = {name: getattr(self.facts, name) for name in ("experiment", "run", *RUN_FIELDS)}
        row |= self.facts.paper_figures
        row |= {"fingerprint": self.fingerprint, "has_events": self.has_events, "spool_bytes": self.spool_bytes}
        return row


def read_runs(folder: DatasetFolder) -> list[IngestedRun]:
    """Read the runs that are in the tables, in order; none if there are no tables.

    DatasetUnreadableError if an older version made the tables, or if a file is none of theirs.
    """
    runs = []
    for file in folder.files(RUNS):
        place = experiment_and_part(file)
        if place is None:
            raise DatasetUnreadableError(
                f"{folder.url} has {file}, and its files are called TABLE/experiment=E/part-N.parquet: move it away"
            )
        experiment, part = place
        for row in folder.rows(file):
            refuse_older_columns(RUNS, row, folder.url)
            runs.append(_run_of_row(row, experiment, part))
    return sorted(runs, key=lambda run: run.name)


def _run_of_row(row: dict[str, Any], experiment: str, part: int) -> IngestedRun:
    of_fields: dict[str, Any] = {name: row[name] for name in ("run", *RUN_FIELDS)}
    paper_figures = {name: row[name] for name in PAPER_FIGURES}
    facts = RunFacts(experiment=experiment, paper_figures=paper_figures, **of_fields)
    return IngestedRun(
        facts=facts,
        fingerprint=row["fingerprint"],
        part=part,
        spool_bytes=row["spool_bytes"],
        has_events=row["has_events"],
    )


@dataclass
class _Fill:
    """The runs that the files of a part hold."""

    runs: int = 0
    spool_bytes: int = 0

    @property
    def has_room(self) -> bool:
        return self.runs < RUNS_A_FILE and self.spool_bytes < SPOOL_BYTES_A_FILE

    def add(self, spool_bytes: int) -> None:
        self.runs += 1
        self.spool_bytes += spool_bytes


def parts_of(new: Sequence[tuple[Name, int]], ingested: Iterable[IngestedRun]) -> list[int]:
    """Return the part of each run in `new`: the part that holds it, or the first of its experiment that has room.

    `new` has the name of each run, and the bytes of its spool.
    """
    parts: dict[Name, int] = {}
    fills: defaultdict[tuple[str, int], _Fill] = defaultdict(_Fill)
    for run in ingested:
        parts[run.name] = run.part
        fills[run.facts.experiment, run.part].add(run.spool_bytes)
    for name, spool_bytes in new:
        if name not in parts:
            experiment, _ = name
            part = 0
            while not fills[experiment, part].has_room:
                part += 1
            parts[name] = part
            fills[experiment, part].add(spool_bytes)
    return [parts[name] for name, _ in new]


def refuse_older(folder: TablesFolder) -> None:
    """Raise DatasetUnreadableError if the tables have an older layout, which shows by a manifest."""
    manifests = [name for name in folder.names() if name.startswith("manifest-")]
    if manifests:
        raise _refusal(folder.url, f"it has {manifests[-1]}")


def refuse_older_columns(table: str, columns: Iterable[str], url: str) -> None:
    """Raise DatasetUnreadableError if the table lacks a column, since an older version made it."""
    if table in NEWEST_COLUMNS and NEWEST_COLUMNS[table] not in columns:
        raise _refusal(url, f"{table} has no column {NEWEST_COLUMNS[table]}")


def _refusal(url: str, sign: str) -> DatasetUnreadableError:
    return DatasetUnreadableError(
        f"{url} has tables of an older version ({sign}), which would be read wrong: "
        "remove that folder, or name another by --tables, and make the tables again, with exchange spark ingest"
    )
