"""`exchange paper NAME`: measures a paper's parts in its order, tests its claims, writes paper.json and the page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from exchange.json_records import SCHEMA, Record
from exchange.record_kinds import PaperRecord
from exchange_simulation.launching.errors import UserError, left_out
from exchange_simulation.launching.files import dated_name, new_run_folder, write_json
from exchange_simulation.launching.interrupts import interruption_noted
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.launching.record.reading import Unusable, read_record
from exchange_simulation.papers.catalogue import paper_of
from exchange_simulation.papers.claims import claim_as_dict, judge_claims
from exchange_simulation.papers.paper import Paper, PaperPart

FILE = "paper.json"
COMPLETE = "complete"
PARTIAL = "partial"
FAILED = "failed"
NOT_MEASURED = "not measured"
INTERRUPTED = "interrupted"
SET_ASIDE = ".interrupted"
"""The end of the name of a part's folder whose measurement was interrupted, and which is measured anew."""


class MeasuredPaper(NamedTuple):
    """A paper after its measurement; record and page are written."""

    folder: Path
    record: Record

    @property
    def exit_code(self) -> int:
        """0, or 1 if a part is missing or its answers were wrong."""
        return 0 if self.record["status"] == COMPLETE else 1


def measure_paper(paper: Paper, *, quick: bool, results: str, name: str | None) -> MeasuredPaper:
    """Measure all parts in a new folder of `results`. UserError if there can be no such folder."""
    folder = new_run_folder(Path(results), name or dated_name(f"paper-{paper.name}"))
    return _Measurement(paper, quick, folder, started_at=now()).run()


def resume_paper(paper: Paper, results: str, name: str) -> MeasuredPaper:
    """Measure the parts that an earlier measurement lacks. UserError if `name` is no measurement of this paper."""
    folder = Path(results) / name
    record = read_paper(folder)
    if record["paper"] != paper.name:
        raise UserError(f"{folder} was made by exchange paper {record['paper']}: type that name before --resume")
    return _Measurement(paper, bool(record["quick"]), folder, record["started_at"]).run()


def read_paper(folder: Path) -> Record:
    """Read a folder's paper.json. UserError if there is none, Unusable if it is damaged."""
    if not (folder / FILE).exists():
        raise UserError(f"{folder} has no {FILE}: exchange results list shows what there is")
    return read_record(folder / FILE, PaperRecord)


@dataclass
class _Measurement:
    """One measurement of a paper, in its folder."""

    paper: Paper
    quick: bool
    folder: Path
    started_at: str

    def run(self) -> MeasuredPaper:
        """Measure the parts that are not measured yet, until a signal asks for an end."""
        from exchange_simulation.papers.page import write_page

        failures: dict[str, str] = {}
        parts = self.paper.parts
        began_s = time.monotonic()
        with interruption_noted() as interruption:
            self._write(failures)
            for number, part in enumerate(parts, start=1):
                if self._record_of(part) is not None:
                    say(f"{number} of {len(parts)}, {part.name}: measured already")
                    continue
                say(f"{number} of {len(parts)}, {part.name}: {part.command(quick=self.quick)}")
                failure = self._measure(part)
                if failure:
                    failures[part.name] = failure
                    say(f"{part.name} failed, the others go on: {failure}")
                self._write(failures)
                if interruption.came:
                    break
            say(f"{len(parts)} parts in {time.monotonic() - began_s:.0f} s")
            record = self._write(failures)
            with left_out("page"):
                write_page(self.folder, record)
        return MeasuredPaper(self.folder, record)

    def _measure(self, part: PaperPart) -> str:
        """Measure a part in its folder; returns why it failed, empty if it did not.

        A folder of an interrupted measurement is kept beside, under another name.
        """
        earlier = self.folder / part.name
        if earlier.exists():
            kept = _free_name(earlier)
            earlier.rename(kept)
        try:
            part.measure(self.folder, quick=self.quick)
        except KeyboardInterrupt:
            return INTERRUPTED
        except click.ClickException as error:
            return error.format_message()
        return ""

    def _record_of(self, part: PaperPart) -> Record | None:
        """Return the record of a part that was measured to its end; otherwise None."""
        record = read_part(self.folder, part)
        if record is None or record["status"] == PARTIAL:
            return None
        return record

    def _write(self, failures: dict[str, str]) -> Record:
        """Write the record of everything that was measured so far, and return it."""
        parts = [self._part_as_dict(part, failures) for part in self.paper.parts]
        is_complete = all(part["status"] == COMPLETE for part in parts)
        record = {
            "schema": SCHEMA,
            "name": self.folder.name,
            "paper": self.paper.name,
            "title": self.paper.title,
            "quick": self.quick,
            "status": COMPLETE if is_complete else PARTIAL,
            "started_at": self.started_at,
            "host": host_facts(),
            "versions": versions(),
            "parts": parts,
            "claims": tested_claims(self.folder, self.paper),
            "caveats": list(_caveats(self.folder, self.paper)),
        }
        write_json(self.folder / FILE, record)
        return record

    def _part_as_dict(self, part: PaperPart, failures: dict[str, str]) -> Record:
        record = read_part(self.folder, part)
        status = record["status"] if record else NOT_MEASURED
        reasons = list(record.get("reasons", ())) if record else []
        if part.name in failures:
            status = PARTIAL if record else FAILED
            reasons.insert(0, failures[part.name])
        return {
            "part": part.name,
            "command": part.command(quick=self.quick),
            "items": [item.name for item in part.items],
            "status": status,
            "reasons": reasons,
        }


def _free_name(folder: Path) -> Path:
    """Return a name for an interrupted part's folder that no earlier interruption has."""
    number = 1
    while True:
        kept = folder.with_name(f"{folder.name}{SET_ASIDE}-{number}")
        if not kept.exists():
            return kept
        number += 1


def read_part(folder: Path, part: PaperPart) -> Record | None:
    """Return the record of a part of the paper in `folder`; None if there is none that can be used."""
    try:
        return part.read(folder / part.name)
    except Unusable:
        return None


def tested_claims(folder: Path, paper: Paper) -> list[Record]:
    """Test the paper's claims on the parts that were measured."""
    records = {}
    for part in paper.parts:
        record = read_part(folder, part)
        if record is not None:
            records[part.name] = record
    return [claim_as_dict(tested) for tested in judge_claims(paper.claims, records)]


def _caveats(folder: Path, paper: Paper) -> Iterator[str]:
    for part in paper.parts:
        record = read_part(folder, part)
        if record is not None:
            for caveat in record["caveats"]:
                yield f"{part.name}: {caveat}"


def paper_in(record: Record) -> Paper:
    """The paper of a record. UserError if this version has no such paper."""
    return paper_of(record["paper"])
