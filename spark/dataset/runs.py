"""The table of runs: the facts of each run.json that was ingested, and the number of the file with the run's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql.types import StructField as Field
from pyspark.sql.types import StructType

from spark.dataset.folder import DatasetFolder, experiment_and_part
from spark.run_facts import RunFacts
from spark.summary import FACTS
from spark.tables.schemas import BOOLEAN, DOUBLE, INT, TEXT

RUNS = "runs"
PART = "part"
RUNS_A_FILE = 64
"""The most runs in a file. A new run goes into a file that is not full, and stays there: few files are rewritten, and
none grows too large for a task."""

TYPES = {"status": TEXT, "transport": TEXT, "arm": TEXT, "gateways": INT}
RUN_FIELDS = [field.name for field in fields(RunFacts) if field.name not in ("experiment", "run", "facts")]
RUNS_SCHEMA = StructType(
    [
        *(Field(name, TEXT, nullable=False) for name in ("experiment", "run", "fingerprint")),
        *(Field(name, TYPES.get(name, DOUBLE)) for name in (*RUN_FIELDS, *FACTS)),
        Field("has_events", BOOLEAN),  # null in tables of older versions
    ]
)

Name = tuple[str, str]
"""A run's experiment and its own name."""


@dataclass(frozen=True, kw_only=True)
class IngestedRun:
    """`fingerprint` is of the run.json that was read; `part` is the number of the files that hold the run's rows."""

    record: RunFacts
    fingerprint: str
    part: int
    has_events: bool = False
    """Whether the tables of events have its rows, too."""

    @property
    def name(self) -> Name:
        return self.record.experiment, self.record.run

    def row(self) -> dict[str, Any]:
        """Return a row of RUNS_SCHEMA, and PART."""
        row = {name: getattr(self.record, name) for name in ("experiment", "run", *RUN_FIELDS)}
        row |= self.record.facts
        row |= {"fingerprint": self.fingerprint, "has_events": self.has_events, PART: self.part}
        return row


def part_of_file() -> Column:
    """Return the number in the name of the file that a row is read from."""
    return fn.regexp_extract(fn.col("_metadata.file_name"), r"^part-(\d+)", 1).cast("int").alias(PART)


def read_runs(folder: DatasetFolder) -> list[IngestedRun]:
    """Read the runs that are in the tables, in order; none if there are no tables."""
    runs = []
    for file in folder.files(RUNS):
        experiment, part = experiment_and_part(file)
        for row in folder.rows(file):
            runs.append(_run_of_row(row, experiment, part))
    return sorted(runs, key=lambda run: run.name)


def _run_of_row(row: dict[str, Any], experiment: str, part: int) -> IngestedRun:
    fields: dict[str, Any] = {name: row.get(name) for name in ("run", *RUN_FIELDS)}
    facts = {name: row.get(name) for name in FACTS}
    record = RunFacts(experiment=experiment, facts=facts, **fields)
    return IngestedRun(record=record, fingerprint=row["fingerprint"], part=part, has_events=bool(row.get("has_events")))


def parts_of(names: Sequence[Name], ingested: Iterable[IngestedRun]) -> list[int]:
    """Return the part of each named run: the part that holds it, or the first of its experiment that is not full."""
    parts = {run.name: run.part for run in ingested}
    runs_in_part = Counter((experiment, part) for (experiment, _), part in parts.items())
    for name in names:
        if name not in parts:
            experiment, _ = name
            part = 0
            while runs_in_part[experiment, part] >= RUNS_A_FILE:
                part += 1
            parts[name] = part
            runs_in_part[experiment, part] += 1
    return [parts[name] for name in names]
