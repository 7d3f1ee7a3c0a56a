"""The figures of folders as Prometheus' text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from exchange.words import printable
from exchange_simulation.cli.results.kind import FolderKind
from exchange_simulation.cli.results.kinds import folders, kind_of
from exchange_simulation.cli.results.row_cells import started_s
from exchange_simulation.cli.results.run import RunKind
from exchange_simulation.cli.results.trial import TrialKind
from exchange_simulation.launching.record.reading import Unusable, damage_named
from exchange_simulation.reports.prometheus import Sample, exposition, samples_of_comparison, samples_of_run

KnownFolder = tuple[Path, FolderKind]


def newest_folders(results: Path, last: int | None) -> list[KnownFolder]:
    """Return the runs and comparisons of a results folder, oldest first; only the newest `last` if that is given."""
    known = []
    for folder in folders(results):
        kind = kind_of(folder)
        if isinstance(kind, RunKind | TrialKind):
            known.append((folder, kind, started_s(kind.row(folder))))
    known.sort(key=lambda entry: entry[2])
    chosen = known if last is None else known[-last:]
    return [(folder, kind) for folder, kind, _ in chosen]


def metrics_text(known_folders: Iterable[KnownFolder]) -> str:
    """Return the text for all these folders. A folder without a usable record is named on stderr, and left out."""
    samples: list[Sample] = []
    for folder, kind in known_folders:
        try:
            with damage_named(folder):
                samples += _samples(folder, kind)
        except Unusable as error:
            click.echo(printable(f"left out: {error.format_message()}"), err=True)
    return exposition(samples)


def _samples(folder: Path, kind: FolderKind) -> Iterator[Sample]:
    record = kind.read(folder)
    if isinstance(kind, RunKind):
        yield from samples_of_run(record, started_s(kind.row(folder)))
    elif isinstance(kind, TrialKind):
        yield from samples_of_comparison(record)
    else:
        click.echo(printable(f"left out: {folder} is a {kind.name}; runs and comparisons are exported"), err=True)
