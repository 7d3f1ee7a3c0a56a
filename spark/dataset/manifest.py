"""The manifest of a dataset: its runs, and the files of its tables, by their names relative to its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

import msgspec

from spark.dataset.folder import DatasetFolder
from spark.errors import DatasetUnreadableError
from spark.run_facts import RunFacts
from spark.tables.spool import Unread

SCHEMA = 1
PREFIX = "manifest-"
MOST_MANIFESTS = 2
"""A reader that has just chosen a manifest still finds it and its files while the next job runs."""

Name = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class IngestedRun:
    """A run's record, what its spool held, and the files of each kind that hold it."""

    record: RunFacts
    fingerprint: str
    """Identifies the run.json that was read."""
    ingest: int
    """The number of the first manifest with this ingest of the run."""
    rows: dict[str, int]
    unread: dict[str, Unread]
    files: dict[str, list[str]]

    @property
    def name(self) -> Name:
        return self.record.experiment, self.record.run


@dataclass(frozen=True, kw_only=True)
class Manifest:
    number: int = 0
    runs: tuple[IngestedRun, ...] = ()
    summary: dict[str, list[str]] = field(default_factory=dict)
    """Files of the tables made of all runs, by table; emptied when runs come or go."""

    def with_runs(self, runs: Iterable[IngestedRun]) -> Manifest:
        """Add runs, in place of former ones of the same names; the summary is gone."""
        together = {run.name: run for run in (*self.runs, *runs)}
        in_order = tuple(together[name] for name in sorted(together))
        return replace(self, number=self.number + 1, runs=in_order, summary={})

    def with_summary(self, summary: dict[str, list[str]]) -> Manifest:
        return replace(self, number=self.number + 1, summary=summary)

    def files(self, kind: str) -> list[str]:
        return [file for run in self.runs for file in run.files.get(kind, [])]


def read_manifest(folder: DatasetFolder) -> Manifest:
    """Read the latest manifest; an empty one if there is none. DatasetUnreadableError if it is damaged or too new."""
    names = folder.names(PREFIX)
    if not names:
        return Manifest()
    try:
        content = json.loads(folder.read(names[-1]))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']}, and this version reads {SCHEMA}")
        return msgspec.convert(content, Manifest)
    except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise DatasetUnreadableError(
            f"{folder.path(names[-1])} is damaged, or of another version ({error}): "
            "remove the folder and make the tables again, with exchange spark ingest"
        ) from error


def write_manifest(folder: DatasetFolder, manifest: Manifest) -> None:
    """Make these files count; call it last. All older manifests but one are removed."""
    content = json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1)
    folder.write(f"{PREFIX}{manifest.number:06}.json", content)
    for name in folder.names(PREFIX)[:-MOST_MANIFESTS]:
        folder.remove(name)
