"""A simulation's folder: simulation.json comes last; instruments and trades are there before it."""

from __future__ import annotations

from pathlib import Path

from cli.looking_back.fields import differing, part_of
from cli.looking_back.row import Row, unusable_row
from exchange.json_records import Record
from exchange.study_records import SimulationRecord
from exchange.words import counted
from runs.record.reading import UNFINISHED, Unusable, read_record

FILE = "simulation.json"
MARKS = (FILE, "instruments.parquet", "trades")
CAVEAT = "The same settings must give the same checksums; speed is the machine's, and the hour's."


def read(folder: Path) -> Record:
    """simulation.json's content; Unusable where it goes on, or was killed."""
    if not (folder / FILE).exists():
        raise Unusable(folder, UNFINISHED, f"has no {FILE}: the simulation goes on, or was killed")
    return read_record(folder / FILE, SimulationRecord)


def row(folder: Path) -> Row:
    """How much was matched, and how fast, in words: it has no offered rate and no completion time."""
    try:
        record = read(folder)
    except Unusable as error:
        return unusable_row(folder, "simulation", error)
    orders, instruments = record["settings"]["orders"], counted(record["settings"]["instruments"], "instruments")
    return Row(
        name=folder.name, what="simulation", status=record["status"], started_at=record["started_at"],
        told=f"{orders:.4g} orders, {instruments}, {record['rates']['orders_per_s'] / 1e6:.3g}M/s",
    )  # fmt: skip


def show(_folder: Path, record: Record) -> None:
    """As its command presented it."""
    from experiments.simulate.show import show

    show(record)


def differ(first: Record, second: Record) -> Record:
    """What was asked, and where, then what came out."""
    conditions = [
        *differing({name: first[name] for name in ("master", "partitions")},
                   {name: second[name] for name in ("master", "partitions")}),
        *(line for part in ("settings", "host", "versions")
          for line in differing(part_of(first, part), part_of(second, part), prefix=f"{part}.")),
    ]  # fmt: skip
    found = [line for part in ("totals", "checksums") for line in differing(first[part], second[part], f"{part}.")]
    speeds = [record["rates"]["orders_per_s"] for record in (first, second)]
    return {
        "kind": "simulation",
        **{side: {name: record[name] for name in ("name", "status", "started_at")}
           for side, record in (("first", first), ("second", second))},
        "conditions": [line for line in conditions if line["field"] != "host.load_before"],
        "found": found,
        "same_streams": {name: first["checksums"][name] == second["checksums"][name] for name in ("orders", "answers")},
        "speed": {"field": "orders/s", "first": speeds[0], "second": speeds[1], "ratio": speeds[1] / speeds[0]},
        "caveat": CAVEAT,
    }  # fmt: skip


def show_difference(difference: Record) -> None:
    """Conditions first."""
    from cli.looking_back.difference_table import columns, said, setting, sides

    sides(difference, lambda head: [head["status"]])
    columns("what differs", difference["conditions"], setting)
    same = [name for name, is_same in difference["same_streams"].items() if is_same]
    said(f"the same checksums of {' and of '.join(same)}" if same else "neither orders nor answers are the same")
    if difference["found"]:
        columns("what came out", difference["found"], setting)
    columns("speed", [difference["speed"]], lambda _, speed: f"{speed:,.0f}", with_ratio=True)
    said(difference["caveat"])
