"""A capacity's folder: capacity.json exists from the first run on, and says whether the search has ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.record_kinds import CapacityRecord
from exchange.unique import unique
from exchange_simulation.cli.results.difference import all_fields_of, print_lines, print_rows
from exchange_simulation.cli.results.kind import FolderKind, ListedFolder, refuse_spark
from exchange_simulation.cli.results.rerun import refuse_journal_elsewhere, settings_of_record, warn_of_differences
from exchange_simulation.launching.record.reading import damage_named
from transports.registry import scheme_of

if TYPE_CHECKING:
    from exchange_simulation.experiments.capacity.search import SearchSettings
    from exchange_simulation.experiments.capacity.searched_load import SearchedLoad


class CapacityKind(FolderKind):
    name = "capacity"
    file = "capacity.json"
    record = CapacityRecord
    shown_by = "exchange_simulation.reports.capacity.table:show"
    marks = (file,)
    page = "capacity.html"
    reported_by = "exchange_simulation.reports.capacity.page:report_capacity"
    remarks = "flags"
    fields = ("objective",)
    parts = all_fields_of("settings", "search", "host", "versions")
    caveat = "Two searches were made at different times, so what differs may be the machine's."

    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        """The folder's line in the list; its offered rate is the capacity of the exchange, if the search found it."""
        capacity = LoadAxis.of(record).capacity(record)
        is_of_exchange = "benchmark" not in record
        return self.row_with(
            folder,
            record,
            what="capacity" if is_of_exchange else f"capacity {record['benchmark']}",
            transports=(scheme_of(record["settings"]["transport"]),),
            orders_per_s=(round(capacity["value"]),) if capacity and is_of_exchange else (),
            runs=len(record["probes"]),
            planned_runs=len(record["probes"]),
            repeats=len(record.get("searches", [record])),
        )

    def findings(self, first: Record, second: Record) -> Record:
        from exchange_simulation.reports.capacity.table import headline

        first_axis = LoadAxis.of(first)
        second_axis = LoadAxis.of(second)
        first_capacity = first_axis.capacity(first)
        second_capacity = second_axis.capacity(second)
        units = unique([first_axis.unit, second_axis.unit])
        row: Record = {"field": f"capacity, {' and '.join(units)}", "first": first_capacity, "second": second_capacity}
        if first_capacity and second_capacity and first_axis == second_axis:
            row["ratio"] = second_capacity["value"] / first_capacity["value"]
        return {"answers": [headline(first), headline(second)], "capacity": row}

    def show_findings(self, difference: Record) -> None:
        first_answer, second_answer = difference["answers"]
        print_lines(f"A: {first_answer}", f"B: {second_answer}")
        print_rows("what was found", [difference["capacity"]], lambda _, capacity: _in_words(capacity), with_ratio=True)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        refuse_spark(with_spark, self.name)
        from exchange_simulation.experiments.capacity.capacity import capacity
        from exchange_simulation.experiments.capacity.search import search_settings_of
        from exchange_simulation.launching.files import dated_name

        record = self.read(folder)
        with damage_named(folder):
            search = search_settings_of(record)
            load = self._load(folder, record, search)
        new_folder = Path(results) / (name or dated_name("capacity"))
        return capacity(load, search, new_folder, as_json)

    def _load(self, folder: Path, record: Record, search: SearchSettings) -> SearchedLoad:
        from exchange_simulation.experiments.capacity.exchange_rates import ExchangeRates, objective_of

        if "benchmark" in record:
            from exchange_simulation.messaging.turned_up import load_again

            warn_of_differences(record)
            return load_again(record, objective_of)
        settings = settings_of_record(folder / self.file, record["settings"])
        refuse_journal_elsewhere(folder, settings)
        warn_of_differences(record, settings)
        return ExchangeRates(settings, objective_of(record["objective"]), search)


def _in_words(capacity: Record | None) -> str:
    """The capacity with its interval. For example: 61,200 (59,800..63,900)"""
    if capacity is None:
        return "no capacity found"
    value = f"{capacity['value']:,.0f}"
    if capacity["low"] is None:
        return value
    return f"{value} ({capacity['low']:,.0f}..{capacity['high']:,.0f})"
