"""A benchmark's folder: bench.json is there from its first measurement on, and says whether it came to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.looking_back.fields import differing, part_of
from cli.looking_back.row import Row, unusable_row
from exchange.json_records import Record
from messaging import reading
from runs.record.reading import Unusable
from transports.registry import scheme_of

FILE, read = reading.FILE, reading.read
MARKS = (FILE,)
CAVEAT = "Two benchmarks were run at different times, so what differs may be the machine's."


def row(folder: Path) -> Row:
    try:
        record = read(folder)
    except Unusable as error:
        return unusable_row(folder, "bench", error)
    parts = record.get("parts", [record])
    made = sum(len(cell["repeats"]) for part in parts for cell in part["rows"])
    return Row(
        name=folder.name,
        what=f"bench {record['benchmark']}",
        status=record["status"],
        started_at=record["started_at"],
        transports=tuple(dict.fromkeys(scheme_of(each) for part in parts for each in part["settings"]["transport"])),
        runs=made,
        planned_runs=made,
        repeats=max(part["settings"]["repeats"] for part in parts),
    )


def show(_folder: Path, record: Record) -> None:
    """As its command presented it."""
    from messaging.table import show

    show(record)


def differ(first: Record, second: Record) -> Record:
    """What was asked, and where, then the figures of the cells that both have."""
    conditions = [
        line for part in ("settings", "host", "versions")
        for line in differing(part_of(first, part), part_of(second, part), prefix=f"{part}.")
    ]  # fmt: skip
    asked = {"benchmark": first["benchmark"]}, {"benchmark": second["benchmark"]}
    return {
        "kind": "bench",
        **{side: {name: record[name] for name in ("name", "status", "reasons", "started_at")}
           for side, record in (("first", first), ("second", second))},
        "conditions": [*differing(*asked), *(line for line in conditions if line["field"] != "host.load_before")],
        "figures": list(_figures(first, second)),
        "caveat": CAVEAT,
    }  # fmt: skip


def _figures(first: Record, second: Record) -> Iterator[Record]:
    """Those of the tables, of each cell."""
    from messaging.catalogue import benchmark_of

    others = {part["benchmark"]: part for part in second.get("parts", [second])}
    for part in first.get("parts", [first]):
        cells = {cell["words"]: cell for cell in others.get(part["benchmark"], {}).get("rows", [])}
        for cell in part["rows"]:
            for column in benchmark_of(part["benchmark"]).columns:
                found = [c["figures"].get(column.name) for c in (cell, cells.get(cell["words"], {"figures": {}}))]
                if all(found):
                    yield _figure(f"{cell['words']}, {column.title}", *found)


def _figure(field: str, first: Any, second: Any) -> Record:
    ratio = {"ratio": second["median"] / first["median"]} if first["median"] else {}
    return {"field": field, "first": first, "second": second, **ratio}


def show_difference(difference: Record) -> None:
    """Conditions first."""
    from cli.looking_back.difference_table import columns, said, setting, sides
    from reports.rounding import rounded

    sides(difference, lambda head: [head["status"], *head["reasons"]])
    columns("what differs", difference["conditions"], setting)
    columns("what was found", difference["figures"], lambda _, found: rounded(found), with_ratio=True)
    said(difference["caveat"])
