"""A capacity's folder: capacity.json is written from the first run on, and says when the search is at its end."""

from __future__ import annotations

from pathlib import Path

from cli.looking_back.fields import differing, part_of
from cli.looking_back.row import Row, unusable_row
from exchange.json_records import Record
from exchange.study_records import CapacityRecord
from runs.record.reading import Unusable, read_record
from transports.registry import scheme_of

FILE = "capacity.json"
MARKS = (FILE,)
CAVEAT = "Two searches were made at different times, so what differs may be the machine's."


def read(folder: Path) -> Record:
    """capacity.json's content."""
    return read_record(folder / FILE, CapacityRecord)


def row(folder: Path) -> Row:
    """Its offered rate is the capacity that was found."""
    try:
        record = read(folder)
    except Unusable as error:
        return unusable_row(folder, "capacity", error)
    found = record["capacity_orders_per_s"]
    return Row(
        name=folder.name,
        what="capacity",
        status=record["status"],
        started_at=record["started_at"],
        transports=(scheme_of(record["settings"]["transport"]),),
        orders_per_s=(round(found["value"]),) if found else (),
        runs=len(record["probes"]),
        planned_runs=len(record["probes"]),
        repeats=len(record["searches"]),
    )


def show(_folder: Path, record: Record) -> None:
    """As its command presented it."""
    from experiments.capacity.table import show

    show(record)


def differ(first: Record, second: Record) -> Record:
    """What was asked, and where, then what was found."""
    found = [record["capacity_orders_per_s"] for record in (first, second)]
    conditions = [
        *differing({"objective": first["objective"]}, {"objective": second["objective"]}),
        *(line for part in ("settings", "search", "host", "versions")
          for line in differing(part_of(first, part), part_of(second, part), prefix=f"{part}.")),
    ]  # fmt: skip
    return {
        "kind": "capacity",
        **{side: {name: record[name] for name in ("name", "status", "flags", "started_at")}
           for side, record in (("first", first), ("second", second))},
        "conditions": [line for line in conditions if line["field"] != "host.load_before"],
        "capacity": {
            "field": "capacity, orders/s", "first": found[0], "second": found[1],
            **({"ratio": found[1]["value"] / found[0]["value"]} if all(found) else {}),
        },
        "caveat": CAVEAT,
    }  # fmt: skip


def show_difference(difference: Record) -> None:
    """Conditions first."""
    from cli.looking_back.difference_table import columns, said, setting, sides

    sides(difference, lambda head: [head["status"], *head["flags"]])
    columns("what differs", difference["conditions"], setting)
    columns("what was found", [difference["capacity"]], lambda _, found: _in_words(found), with_ratio=True)
    said(difference["caveat"])


def _in_words(found: Record | None) -> str:
    """61,200 (59,800..63,900)"""
    if found is None:
        return "no edge"
    interval = "" if found["low"] is None else f" ({found['low']:,.0f}..{found['high']:,.0f})"
    return f"{found['value']:,.0f}{interval}"
