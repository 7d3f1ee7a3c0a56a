"""Reads a paper's folder: its record, the records of its parts, and what both say of its claims."""

from __future__ import annotations

from pathlib import Path

from exchange.json_records import Record
from exchange.record_kinds import PaperRecord
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.noise_summary import NoiseSummary, noise_of
from exchange_simulation.launching.record.reading import Unusable, read_record
from exchange_simulation.messaging.network_sentences import unlike_networks
from exchange_simulation.papers.catalogue import paper_of
from exchange_simulation.papers.claims import PartRecords, claim_as_dict, judge_claims
from exchange_simulation.papers.paper import Paper, PaperPart

FILE = "paper.json"


def read_paper(folder: Path) -> Record:
    """Read a folder's paper.json. UserError if there is none, Unusable if it is damaged."""
    if not (folder / FILE).exists():
        raise UserError(f"{folder} has no {FILE}: exchange results list shows what there is")
    return read_record(folder / FILE, PaperRecord)


def paper_in(record: Record) -> Paper:
    """Return the paper of a record. UserError if this version has no such paper."""
    return paper_of(record["paper"])


def read_part(folder: Path, part: PaperPart) -> Record | None:
    """Return the record of a part of the paper in `folder`; None if there is none that can be used."""
    try:
        return part.read(folder / part.name)
    except Unusable:
        return None


def read_parts(folder: Path, paper: Paper) -> dict[str, Record]:
    """Return the records of all parts that were measured, by part, in the paper's order."""
    records: dict[str, Record] = {}
    for part in paper.parts:
        record = read_part(folder, part)
        if record is not None:
            records[part.name] = record
    return records


def tested_claims(paper: Paper, records: PartRecords) -> list[Record]:
    """Test the paper's claims on the parts that were measured."""
    return [claim_as_dict(tested) for tested in judge_claims(paper.claims, records)]


def caveats_of(records: PartRecords) -> list[str]:
    """Return the caveats of all parts, each once, behind the names of its parts.

    First come those of an emulated network that is not the one that was asked for.
    """
    parts_by_caveat: dict[str, list[str]] = {}
    for name, record in records.items():
        networks = [*unlike_networks(record.get("networks", ()))]
        for caveat in [*networks, *record["caveats"]]:
            parts_by_caveat.setdefault(caveat, []).append(name)
    return [f"{', '.join(names)}: {caveat}" for caveat, names in parts_by_caveat.items()]


def brokers_of(records: PartRecords) -> dict[str, str]:
    """Return product and version of the broker of each transport in the parts that are benchmarks."""
    versions: dict[str, str] = {}
    for record in records.values():
        versions |= record.get("brokers", {})
    return versions


def noise_of_parts(records: PartRecords) -> NoiseSummary:
    """Return the noise of all measurements of all parts."""
    return NoiseSummary.together(noise_of(record) for record in records.values())
