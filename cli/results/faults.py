"""A fault matrix' folder: faults.json exists from the first cell on, and says whether all were run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cli.results.difference import differing_conditions, heads, print_heads, print_lines, print_rows, setting_words
from cli.results.kind import Kind, Row
from cli.results.rerun import warn_of_differences
from exchange.json_records import FaultsRecord, Record

CAVEAT = "A fault meets a run at another moment each time, so the number of orders lost varies."


class Faults(Kind):
    name, file, record = "faults", "faults.json", FaultsRecord
    marks = (file,)
    page = "faults.html"

    def row_of(self, folder: Path, record: Record) -> Row:
        return Row(
            name=folder.name,
            what="faults",
            status=record["status"],
            started_at=record["started_at"],
            transports=tuple(dict.fromkeys(cell["transport"] for cell in record["cells"])),
            orders_per_s=(record["settings"]["rate_per_s"],),
            runs=len(record["cells"]),
            planned_runs=record["planned_cells"],
        )

    def show(self, folder: Path, record: Record) -> None:  # noqa: ARG002
        from reports.faults.table import show

        show(record)

    def differ(self, first: Record, second: Record) -> Record:
        return {
            "kind": "faults",
            **heads(first, second, ("name", "status", "started_at")),
            "conditions": differing_conditions(first, second, [], ("settings", "host", "versions")),
            "figures": list(_figures(first, second)),
            "caveat": CAVEAT,
        }

    def show_difference(self, difference: Record) -> None:
        print_heads(difference, lambda head: [head["status"]])
        print_rows("what differs", difference["conditions"], setting_words)
        print_rows("orders lost", difference["figures"], lambda _, found: f"{found:,}")
        print_lines(difference["caveat"])

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:  # noqa: ARG002
        from experiments.faults.matrix import plan_of, run_matrix

        record = self.read(folder)
        warn_of_differences(record)
        return run_matrix(plan_of(record), results, name, as_json)


def _figures(first: Record, second: Record) -> Iterator[Record]:
    """Orders lost in the cells that both have."""
    found = [
        {f"{cell['fault']} over {cell['over']}": cell["orders"]["lost"] for cell in record["cells"] if "orders" in cell}
        for record in (first, second)
    ]
    for field in (name for name in found[0] if name in found[1]):
        yield {"field": field, "first": found[0][field], "second": found[1][field]}
