"""A benchmark's folder: bench.json exists from the first measurement on, and says whether the benchmark has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from exchange.json_records import Record
from exchange.record_kinds import BenchRecord
from exchange.unique import unique
from exchange_simulation.cli.results.difference import print_rows
from exchange_simulation.cli.results.kind import FolderKind, ListedFolder, refuse_spark
from exchange_simulation.cli.results.rerun import warn_of_differences
from transports.registry import scheme_of


class BenchKind(FolderKind):
    name = "bench"
    file = "bench.json"
    record = BenchRecord
    shown_by = "exchange_simulation.messaging.report:show"
    marks = (file,)
    page = "bench.html"
    reported_by = "exchange_simulation.messaging.report:report_benchmark"
    remarks = "reasons"
    fields = ("benchmark",)
    caveat = "Two benchmarks were run at different times, so what differs may be the machine's."

    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        parts = record.get("parts", [record])
        runs = 0
        schemes: list[str] = []
        for part in parts:
            runs += sum(len(cell["repeats"]) for cell in part["rows"])
            schemes += [scheme_of(transport) for transport in part["settings"]["transport"]]
        return self.row_with(
            folder,
            record,
            what=f"bench {record['benchmark']}",
            transports=tuple(unique(schemes)),
            runs=runs,
            planned_runs=runs,
            repeats=max(part["settings"]["repeats"] for part in parts),
        )

    def findings(self, first: Record, second: Record) -> Record:
        """The figures of the cells that both records have."""
        return {"figures": list(_figures(first, second))}

    def show_findings(self, difference: Record) -> None:
        from exchange_simulation.reports.formats.estimates import median_text

        print_rows("what was found", difference["figures"], lambda _, figure: median_text(figure), with_ratio=True)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        refuse_spark(with_spark, self.name)
        from exchange_simulation.messaging.running import BenchmarkOutput, run_again

        record = self.read(folder)
        warn_of_differences(record)
        return run_again(folder, record, BenchmarkOutput(results, name, as_json))


def _figures(first: Record, second: Record) -> Iterator[Record]:
    """Yield the figures of each cell that both records have, a figure for each column of the benchmark's table."""
    second_parts = {part["benchmark"]: part for part in second.get("parts", [second])}
    for part in first.get("parts", [first]):
        second_part = second_parts.get(part["benchmark"], {})
        second_cells = {cell["words"]: cell for cell in second_part.get("rows", [])}
        for cell in part["rows"]:
            if cell["words"] in second_cells:
                yield from _figures_of_cell(part["benchmark"], cell, second_cells[cell["words"]])


def _figures_of_cell(benchmark: str, first: Record, second: Record) -> Iterator[Record]:
    """Yield the figures that both cells have; `ratio` is the second median over the first."""
    from exchange_simulation.messaging.benchmarks import benchmark_of

    for column in benchmark_of(benchmark).columns:
        first_figure = first["figures"].get(column.name)
        second_figure = second["figures"].get(column.name)
        if first_figure and second_figure:
            row = {"field": f"{first['words']}, {column.title}", "first": first_figure, "second": second_figure}
            if first_figure["median"]:
                row["ratio"] = second_figure["median"] / first_figure["median"]
            yield row
