"""What of a dataset counts: its runs, and the files of its tables, by their names from its place."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from spark.dataset.place import Place
from spark.errors import DatasetUnreadableError
from spark.ingest import Unread
from spark.run_record import RunRecord

SCHEMA = 1
PREFIX = "manifest-"
KEPT = 2
"""Manifests: a reader that has just chosen one finds it, and its files, a job later."""

Name = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class IngestedRun:
    """A run's record, what its spool held, and where that is: the files of each kind."""

    record: RunRecord
    fingerprint: str
    """Of the run.json that was read."""
    ingest: int
    """The number of the manifest that brought it."""
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
    """Tables made of all runs; empty again when runs come or go."""

    def with_runs(self, runs: Iterable[IngestedRun]) -> Manifest:
        """These in place of former ones of the same name."""
        together = {run.name: run for run in (*self.runs, *runs)}
        kept = tuple(together[name] for name in sorted(together))
        return replace(self, number=self.number + 1, runs=kept, summary={})

    def with_summary(self, summary: dict[str, list[str]]) -> Manifest:
        return replace(self, number=self.number + 1, summary=summary)

    def files(self, kind: str) -> list[str]:
        return [file for run in self.runs for file in run.files.get(kind, [])]


def read_manifest(place: Place) -> Manifest:
    """The latest; an empty one where there is none. DatasetUnreadableError where it is damaged, or a newer one."""
    names = place.names(PREFIX)
    if not names:
        return Manifest()
    try:
        return _manifest(json.loads(place.read(names[-1])))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatasetUnreadableError(
            f"{place.path(names[-1])} is damaged, or of another version ({error}): "
            "remove the folder and make the tables again, with exchange spark ingest"
        ) from error


def write_manifest(place: Place, manifest: Manifest) -> None:
    """Last of all: from now on these files count. Older manifests go, but one."""
    content = json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1)
    place.write(f"{PREFIX}{manifest.number:06}.json", content)
    for name in place.names(PREFIX)[:-KEPT]:
        place.remove(name)


def _manifest(content: dict[str, Any]) -> Manifest:
    if content["schema"] != SCHEMA:
        raise ValueError(f"schema {content['schema']}, and this version reads {SCHEMA}")
    runs = tuple(_run(**run) for run in content["runs"])
    return Manifest(number=content["number"], runs=runs, summary=content["summary"])


def _run(record: dict[str, Any], unread: dict[str, Any], **known: Any) -> IngestedRun:
    read = {problem: Unread(**found) for problem, found in unread.items()}
    return IngestedRun(record=RunRecord(**record), unread=read, **known)
