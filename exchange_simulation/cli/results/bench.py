"""A benchmark's folder: bench.json exists from the first measurement on, and says whether the benchmark has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from exchange.json_records import BenchRecord, Record
from exchange_simulation.cli.results.difference import print_rows
from exchange_simulation.cli.results.kind import Kind, Row
from exchange_simulation.cli.results.rerun import warn_of_differences
from transports.registry import scheme_of


class Bench(Kind):
    name, file, record = "bench", "bench.json", BenchRecord
    shown_by = "exchange_simulation.messaging.report:show"
    marks = (file,)
    page, reported_by = "bench.html", "exchange_simulation.messaging.report:report_benchmark"
    remarks, fields = "reasons", ("benchmark",)
    caveat = "Two benchmarks were run at different times, so what differs may be the machine's."

    def row_of(self, folder: Path, record: Record) -> Row:
        parts = record.get("parts", [record])
        runs = sum(len(cell["repeats"]) for part in parts for cell in part["rows"])
        schemes = (scheme_of(each) for part in parts for each in part["settings"]["transport"])
        return self.row_with(
            folder,
            record,
            what=f"bench {record['benchmark']}",
            transports=tuple(dict.fromkeys(schemes)),
            runs=runs,
            planned_runs=runs,
            repeats=max(part["settings"]["repeats"] for part in parts),
        )

    def found(self, first: Record, second: Record) -> Record:
        """The figures of the cells that both records have."""
        return {"figures": list(_figures(first, second))}

    def show_found(self, difference: Record) -> None:
        from exchange_simulation.reports.formats import rounded

        print_rows("what was found", difference["figures"], lambda _, found: rounded(found), with_ratio=True)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:  # noqa: ARG002
        from exchange_simulation.messaging.running import Output, run_again

        record = self.read(folder)
        warn_of_differences(record)
        return run_again(record, Output(results, name, as_json))


def _figures(first: Record, second: Record) -> Iterator[Record]:
    """The figures of each cell that the table shows."""
    from exchange_simulation.messaging.benchmarks import benchmark_of

    others = {part["benchmark"]: part for part in second.get("parts", [second])}
    for part in first.get("parts", [first]):
        cells = {cell["words"]: cell for cell in others.get(part["benchmark"], {}).get("rows", [])}
        for cell in part["rows"]:
            for column in benchmark_of(part["benchmark"]).columns:
                one, other = (c["figures"].get(column.name) for c in (cell, cells.get(cell["words"], {"figures": {}})))
                if one and other:
                    ratio = {"ratio": other["median"] / one["median"]} if one["median"] else {}
                    yield {"field": f"{cell['words']}, {column.title}", "first": one, "second": other, **ratio}
