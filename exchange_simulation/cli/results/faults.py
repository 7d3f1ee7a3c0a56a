"""A fault matrix' folder: faults.json exists from the first cell on, and says whether all were run."""

from __future__ import annotations

from pathlib import Path

from exchange.json_records import Record
from exchange.record_kinds import FaultsRecord
from exchange.unique import unique
from exchange_simulation.cli.results.difference import print_rows
from exchange_simulation.cli.results.kind import FolderKind, ListedFolder, refuse_spark
from exchange_simulation.cli.results.rerun import warn_of_differences
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.reading import damage_named


class FaultsKind(FolderKind):
    name = "faults"
    file = "faults.json"
    record = FaultsRecord
    shown_by = "exchange_simulation.reports.faults.table:show"
    marks = (file,)
    page = "faults.html"
    reported_by = "exchange_simulation.reports.faults.page:report_faults"
    caveat = "A fault meets a run at another moment each time, so the number of orders lost varies."

    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        return self.row_with(
            folder,
            record,
            transports=tuple(unique(cell["transport"] for cell in record["cells"])),
            orders_per_s=(record["settings"]["rate_per_s"],),
            runs=len(record["cells"]),
            planned_runs=record["planned_cells"],
        )

    def findings(self, first: Record, second: Record) -> Record:
        """Orders lost in the cells that both have."""
        first_lost = _orders_lost(first)
        second_lost = _orders_lost(second)
        figures = []
        for cell, lost in first_lost.items():
            if cell in second_lost:
                figures.append({"field": cell, "first": lost, "second": second_lost[cell]})
        return {"figures": figures}

    def show_findings(self, difference: Record) -> None:
        print_rows("orders lost", difference["figures"], lambda _, lost: f"{lost:,}")

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        refuse_spark(with_spark, self.name)
        from exchange_simulation.experiments.faults.matrix import plan_of, run_matrix

        record = self.read(folder)
        with damage_named(folder):
            plan = plan_of(record)
        if any(word.partition("=")[0] == "--journal" for word in plan.further_options):
            raise UserError(
                f"{folder} was run with --journal, and a rerun would write into that journal: type its command yourself"
            )
        warn_of_differences(record)
        return run_matrix(plan, results, name, as_json)


def _orders_lost(record: Record) -> dict[str, int]:
    """Orders lost, by cell; a cell that could not be tried is absent.

    A cell's `over` is its transport, with the guarantee if there are several. For example: kill-engine over amqp
    confirmed.
    """
    lost = {}
    for cell in record["cells"]:
        if "orders" in cell:
            name = f"{cell['fault']} over {cell['over']}"
            lost[name] = cell["orders"]["lost"]
    return lost
