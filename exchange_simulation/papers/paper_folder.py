"""Reads a paper's folder: its record, the records of its parts, and what follows from these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from exchange.json_records import Record
from exchange.record_kinds import PaperRecord
from exchange.unique import unique
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.noise_summary import NOISE_SUMMARY, NoiseSummary, noise_of
from exchange_simulation.launching.record.reading import Unusable, read_record
from exchange_simulation.messaging.measuring import COMPLETE, PARTIAL
from exchange_simulation.messaging.network_sentences import unlike_networks
from exchange_simulation.papers.catalogue import paper_of
from exchange_simulation.papers.claims import NOT_MEASURED, PartRecords, claim_as_dict, judge_claims
from exchange_simulation.papers.extent import Extent
from exchange_simulation.papers.paper import Paper, PaperPart

FILE = "paper.json"
FAILED = "failed"
"""The status of a part of which nothing could be measured."""


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


def outcome_fields(
    paper: Paper, extent: Extent, records: PartRecords, failures: Mapping[str, str], versions: Record
) -> Record:
    """Return the fields of paper.json that follow from the records of its parts.

    `failures`: why parts could not be measured, or ended early, by part. `versions`: those of the first measurement.
    """
    parts = [_part_entry(part, extent, records.get(part.name), failures.get(part.name, "")) for part in paper.parts]
    is_complete = all(part["status"] == COMPLETE for part in parts)
    return {
        "status": COMPLETE if is_complete else PARTIAL,
        "brokers": _brokers_of(records),
        "parts": parts,
        NOISE_SUMMARY: _noise_of_parts(records).as_dict(),
        "claims": [claim_as_dict(tested) for tested in judge_claims(paper.claims, records)],
        "caveats": caveats_of(records, versions),
    }


def _part_entry(part: PaperPart, extent: Extent, record: Record | None, failure: str) -> Record:
    """Return what paper.json says of a part; `failure` is empty if it neither failed nor ended early."""
    status = record["status"] if record else NOT_MEASURED
    reasons = list(record.get("reasons", ())) if record else []
    if failure:
        status = PARTIAL if record else FAILED
        reasons = unique([failure, *reasons])
    return {
        "part": part.name,
        "command": part.command(extent),
        "items": [item.name for item in part.items],
        "status": status,
        "reasons": reasons,
    }


def recorded_failures(record: Record, records: PartRecords) -> dict[str, str]:
    """Return why parts could not be measured, or ended early, by part, as a paper's record says it.

    `records` are those of the parts: one that has been measured to its end in the meantime is left out.
    """
    return {
        entry["part"]: entry["reasons"][0]
        for entry in record["parts"]
        if entry["status"] in (FAILED, PARTIAL)
        and entry["reasons"]
        and (entry["part"] not in records or records[entry["part"]]["status"] == PARTIAL)
    }


def caveats_of(records: PartRecords, versions: Record) -> list[str]:
    """Return the caveats of all parts, each once, behind the names of its parts.

    First come those of an emulated network that is not the one that was asked for. `versions` are those of the first
    measurement: a part that was measured with others, as after --resume, has a caveat.
    """
    parts_by_caveat: dict[str, list[str]] = {}
    for name, record in records.items():
        networks = [*unlike_networks(record.get("networks", ()))]
        for caveat in [*networks, *_other_versions(record, versions), *record["caveats"]]:
            parts_by_caveat.setdefault(caveat, []).append(name)
    return [f"{', '.join(names)}: {caveat}" for caveat, names in parts_by_caveat.items()]


def _other_versions(record: Record, versions: Record) -> Iterator[str]:
    """Yield a sentence if a part was measured with other versions than these.

    For example: measured with other versions than the first part: numba 0.68.1
    """
    # A benchmark and a capacity have their versions themselves, a trial has them in its conditions.
    of_part = record.get("versions") or record.get("conditions", {}).get("versions") or {}
    others = [
        f"{name} {version}"
        for name, version in of_part.items()
        if name != "uncommitted_changes" and versions.get(name) != version
    ]
    if others:
        yield f"measured with other versions than the first part: {', '.join(others)}"


def _brokers_of(records: PartRecords) -> dict[str, str]:
    """Return product and version of the broker of each transport in the parts that are benchmarks."""
    versions: dict[str, str] = {}
    for record in records.values():
        versions |= record.get("brokers", {})
    return versions


def _noise_of_parts(records: PartRecords) -> NoiseSummary:
    """Return the noise of all measurements of all parts."""
    return NoiseSummary.together(noise_of(record) for record in records.values())
