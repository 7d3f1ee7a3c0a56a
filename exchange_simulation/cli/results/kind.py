"""The interface of a kind of folder to `exchange results`: list line, record, difference, rerun."""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from exchange.json_records import Record
from exchange_simulation.cli.results.difference import (
    Parts,
    all_fields_of,
    differing,
    differing_parts,
    print_heads,
    print_lines,
    print_rows,
)
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.folder_lock import is_locked
from exchange_simulation.launching.record.noise_summary import noise_of
from exchange_simulation.launching.record.reading import UNFINISHED, Unusable, damage_named, read_record

RUNNING = "running"
PARTIAL = "partial"
INTERRUPTED = "interrupted"
"""Statuses that a record has while its measurement goes on: they would stay if its process were killed."""
SETTINGS_AND_MACHINE = all_fields_of("settings", "host", "versions")


@dataclass(frozen=True, kw_only=True)
class ListedFolder:
    """A line of the list, and an object of its JSON. A field is null or empty if the folder does not have it."""

    name: str
    what: str
    """`run`, or the command that made the folder."""
    status: str
    reason: str | None = None
    """Why its record cannot be used."""
    started_at: str | None = None
    last_written_at: str | None = None
    """Set if the record cannot be used: the time of the last change shows whether the run goes on."""
    transports: tuple[str, ...] = ()
    orders_per_s: tuple[float | None, ...] = ()
    """Offered rates; null means as fast as possible."""
    p50_us: float | None = None
    """Completion time from due, like p99_us."""
    p99_us: float | None = None
    orders_measured: float | None = None
    """How many orders p50 and p99 are of; fewer than a thousand do not tell a p99."""
    repeats: int | None = None
    runs: int | None = None
    """How many of a trial's planned runs count."""
    planned_runs: int | None = None
    words: str | None = None
    """Words in place of figures, if figures do not apply."""
    is_noisy: bool = False
    """Whether others took too much of the processors during more than half of the measurements."""


class FolderKind(ABC):
    """A kind of folder in a results directory."""

    name: str
    marks: tuple[str, ...]
    """A folder that holds one of these files is of this kind, unless an earlier kind claims it."""
    file: str
    page = ""
    """The file of the page that `exchange report` makes; empty for a kind without one."""
    record: type
    """The TypedDict that describes the content of `file`."""
    shown_by = ""
    """The function, as module:name, that prints a record; its module is imported when one is shown."""
    reported_by = ""
    """The function that makes its report, written and imported in the same way; empty for a kind without one."""
    unfinished = ""
    """The sentence about a folder without `file`, with {folder} in it; empty if every folder has one."""
    remarks = ""
    """The field with sentences about a record, if it has any."""
    fields: Sequence[str] = ()
    """Fields that are conditions."""
    parts: Parts = SETTINGS_AND_MACHINE
    """Parts of a record whose fields are conditions."""
    conditions_title = "what differs"
    no_conditions = ""
    """The sentence in place of the table of conditions if none differs; empty to print an empty table."""
    caveat: str
    """The sentence below a difference that says how far it can be trusted."""

    def read(self, folder: Path) -> Record:
        """The folder's record. Unusable if there is none, or none that this version can use."""
        if self.unfinished and not (folder / self.file).exists():
            raise Unusable(folder, UNFINISHED, f"has no {self.file}: {self.unfinished.format(folder=folder)}")
        return read_record(folder / self.file, self.record)

    def row(self, folder: Path) -> ListedFolder:
        """The folder's line in the list, also if its record cannot be used."""
        row = self._recorded_row(folder)
        has_no_end = row.status in (PARTIAL, INTERRUPTED, UNFINISHED)
        return replace(row, status=RUNNING) if has_no_end and self.is_running(folder) else row

    def _recorded_row(self, folder: Path) -> ListedFolder:
        """The folder's line, by its record alone."""
        try:
            with damage_named(folder):
                return self.row_of(folder, self.read(folder))
        except Unusable as error:
            return unusable_row(folder, self.name, error)

    def is_running(self, folder: Path) -> bool:
        """Whether a process of this host measures in the folder now."""
        return is_locked(folder)

    @abstractmethod
    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        """The folder's line in the list, from its record."""

    def row_with(self, folder: Path, record: Record, **fields: Any) -> ListedFolder:
        """The folder's name, its record's status and start, and these fields; by default the kind says what it is."""
        by_default = {
            "what": self.name,
            "status": record["status"],
            "started_at": record.get("started_at"),
            "is_noisy": noise_of(record).is_noisy,
        }
        return ListedFolder(name=folder.name, **{**by_default, **fields})

    def show(self, folder: Path, record: Record) -> None:  # noqa: ARG002
        """Print the record in the same form as the command that made it."""
        pkgutil.resolve_name(self.shown_by)(record)

    @abstractmethod
    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        """Repeat what the folder records, in a new folder of `results`; return the exit code."""

    def differ(self, first: Record, second: Record) -> Record:
        """The differences between two records, as `results diff --json` prints them."""
        return {
            "kind": self.name,
            "first": self.head(first),
            "second": self.head(second),
            "conditions": self.conditions(first, second),
            **self.findings(first, second),
            "caveat": self.caveat,
        }

    def head(self, record: Record) -> Record:
        """The fields of a record that are shown above a difference."""
        names = ["name", "status", "started_at"]
        if self.remarks:
            names.insert(2, self.remarks)
        return {name: record[name] for name in names}

    def conditions(self, first: Record, second: Record) -> list[Record]:
        """The conditions that differ."""
        return [*differing(first, second, names=self.fields), *differing_parts(first, second, self.parts)]

    @abstractmethod
    def findings(self, first: Record, second: Record) -> Record:
        """The results of both records, side by side."""

    def show_difference(self, difference: Record) -> None:
        """Print what `differ` returned."""
        print_heads(difference, self.head_lines)
        if self.no_conditions and not difference["conditions"]:
            print_lines(self.no_conditions)
        else:
            print_rows(self.conditions_title, self.condition_rows(difference))
        self.show_findings(difference)
        print_lines(difference["caveat"])

    def head_lines(self, head: Record) -> Iterable[str]:
        return [head["status"], *head.get(self.remarks, ())]

    def condition_rows(self, difference: Record) -> Iterable[Record]:
        return difference["conditions"]

    @abstractmethod
    def show_findings(self, difference: Record) -> None:
        """Print the part of the difference that `findings` made."""


def refuse_spark(with_spark: bool | None, kind: str) -> None:
    """Raise UserError if the user said something about Spark, which a rerun of this kind never uses."""
    if with_spark is not None:
        option = "--spark" if with_spark else "--no-spark"
        raise UserError(f"{option} changes nothing: a {kind} makes no tables with Spark; leave it out")


def unusable_row(folder: Path, what: str, error: Unusable) -> ListedFolder:
    written_at = last_written_at(folder)
    return ListedFolder(
        name=folder.name, what=what, status=error.status, reason=error.reason, last_written_at=written_at
    )


def last_written_at(folder: Path) -> str | None:
    """The time of the last change in the folder, or one level below; None if the folder is gone."""
    try:
        newest_s = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return None
    return datetime.fromtimestamp(newest_s).astimezone().isoformat(timespec="seconds")
