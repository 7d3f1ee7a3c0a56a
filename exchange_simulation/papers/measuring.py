"""`exchange paper NAME`: measures a paper's parts in its order, tests its claims, writes paper.json and the page."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from exchange.json_records import SCHEMA, Record
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import dated_name, new_run_folder, write_json
from exchange_simulation.launching.folder_lock import locked
from exchange_simulation.launching.interrupts import interruption_noted
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.messaging.benchmark_record import INTERRUPTED
from exchange_simulation.messaging.measuring import COMPLETE, PARTIAL
from exchange_simulation.papers.extent import Extent, recorded_extent
from exchange_simulation.papers.page import write_page
from exchange_simulation.papers.paper import Paper, PaperPart
from exchange_simulation.papers.paper_folder import (
    FILE,
    outcome_fields,
    read_paper,
    read_part,
    read_parts,
)
from exchange_simulation.papers.planned import PlannedPart, planned_parts, total_in_words
from exchange_simulation.reports.report import page_unless_missing

SET_ASIDE = ".interrupted"
"""The end of the name of a part's folder whose measurement was interrupted and cannot go on."""


class MeasuredPaper(NamedTuple):
    """A paper after its measurement; record and page are written."""

    folder: Path
    record: Record
    is_interrupted: bool
    """True if a signal ended the measurement early."""

    @property
    def exit_code(self) -> int:
        """0, or 1 if a part is missing or its answers were wrong."""
        return 0 if self.record["status"] == COMPLETE else 1


def measure_paper(paper: Paper, extent: Extent, *, results: str, name: str | None) -> MeasuredPaper:
    """Measure all parts in a new folder of `results`. UserError if there can be no such folder."""
    folder = new_run_folder(Path(results), name or dated_name(f"paper-{paper.name}"))
    return _Measurement(paper, extent, folder, now(), host_facts(), versions()).run()


def resume_paper(paper: Paper, folder: Path) -> MeasuredPaper:
    """Measure the parts that the measurement in `folder` lacks. UserError if it is none of this paper."""
    record = _record_to_resume(paper, folder)
    extent = recorded_extent(record)
    return _Measurement(paper, extent, folder, record["started_at"], record["host"], record["versions"]).run()


def parts_left(paper: Paper, folder: Path) -> list[PlannedPart]:
    """Return the paper's parts: which of them the measurement in `folder` has, and how long the others take.

    UserError if it is none of this paper.
    """
    extent = recorded_extent(_record_to_resume(paper, folder))
    return planned_parts(paper, extent, partial(_is_measured, folder))


def _record_to_resume(paper: Paper, folder: Path) -> Record:
    """Return the record in `folder`. UserError if it is of no measurement of this paper."""
    record = read_paper(folder)
    if record["paper"] != paper.name:
        raise UserError(f"{folder} was made by exchange paper {record['paper']}: type that name before --resume")
    return record


def _is_measured(folder: Path, part: PaperPart) -> bool:
    """Return whether the part was measured to its end."""
    record = read_part(folder, part)
    return record is not None and record["status"] != PARTIAL


@dataclass
class _Measurement:
    """One measurement of a paper, in its folder."""

    paper: Paper
    extent: Extent
    folder: Path
    started_at: str
    host: Record
    """The machine, with its load before the first of these measurements."""
    versions: Record
    """Those of the first measurement; a part that was measured with others has a caveat."""

    def run(self) -> MeasuredPaper:
        """Measure the parts that are not measured yet, until a signal asks for an end."""
        failures: dict[str, str] = {}
        parts = self.paper.parts
        began_s = time.monotonic()
        with interruption_noted() as interruption, locked(self.folder):
            self._write(failures)
            planned = planned_parts(self.paper, self.extent, partial(_is_measured, self.folder))
            say(f"{self.paper.name}: {total_in_words(planned)}")
            for number, part in enumerate(parts, start=1):
                if _is_measured(self.folder, part):
                    say(f"{number} of {len(parts)}, {part.name}: measured already")
                    continue
                say(f"{number} of {len(parts)}, {part.name}: {part.command(self.extent)}")
                failure = self._measure(part)
                if interruption.came:
                    if not _is_measured(self.folder, part):
                        failures[part.name] = INTERRUPTED
                    break
                if failure:
                    failures[part.name] = failure
                    say(f"{part.name} failed, the others go on: {failure}")
                self._write(failures)
            else:
                say(f"all parts in {time.monotonic() - began_s:.0f} s")
            record = self._write(failures)
            page_unless_missing(lambda: write_page(self.folder, record))
        return MeasuredPaper(self.folder, record, interruption.came)

    def _measure(self, part: PaperPart) -> str:
        """Measure a part in its folder; returns why it failed, empty if it did not.

        An interrupted measurement by the same command goes on. One that cannot go on is kept beside, under another
        name.
        """
        earlier = self.folder / part.name
        try:
            if earlier.exists() and part.can_go_on(earlier, self.extent):
                part.go_on(earlier, self.extent)
                return ""
            if earlier.exists():
                earlier.rename(_free_name(earlier))
            part.measure(self.folder, self.extent)
        except KeyboardInterrupt:
            return INTERRUPTED
        except click.ClickException as error:
            return error.format_message()
        return ""

    def _write(self, failures: dict[str, str]) -> Record:
        """Write the record of everything that was measured so far, and return it."""
        records = read_parts(self.folder, self.paper)
        record = {
            "schema": SCHEMA,
            "name": self.folder.name,
            "paper": self.paper.name,
            "title": self.paper.title,
            **self.extent.as_dict(),
            "started_at": self.started_at,
            "host": self.host,
            "versions": self.versions,
            **outcome_fields(self.paper, self.extent, records, failures, self.versions),
        }
        write_json(self.folder / FILE, record)
        return record


def _free_name(folder: Path) -> Path:
    """Return a name for an interrupted part's folder that no earlier interruption has."""
    number = 1
    while True:
        kept = folder.with_name(f"{folder.name}{SET_ASIDE}-{number}")
        if not kept.exists():
            return kept
        number += 1
