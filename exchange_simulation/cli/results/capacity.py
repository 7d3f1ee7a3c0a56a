"""A capacity's folder: capacity.json exists from the first run on, and says whether the search has ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exchange.json_records import CapacityRecord, LoadAxis, Record
from exchange_simulation.cli.results.difference import print_lines, print_rows
from exchange_simulation.cli.results.kind import Kind, Row
from exchange_simulation.cli.results.rerun import settings_of_record, warn_of_differences
from transports.registry import scheme_of

if TYPE_CHECKING:
    from exchange_simulation.experiments.capacity.capacity import SearchedLoad
    from exchange_simulation.experiments.capacity.search import SearchSettings


class Capacity(Kind):
    name, file, record = "capacity", "capacity.json", CapacityRecord
    shown_by = "exchange_simulation.reports.capacity.table:show"
    marks = (file,)
    page, reported_by = "capacity.html", "exchange_simulation.reports.capacity.page:report_capacity"
    remarks, fields = "flags", ("objective",)
    parts = dict.fromkeys(("settings", "search", "host", "versions"))
    caveat = "Two searches were made at different times, so what differs may be the machine's."

    def row_of(self, folder: Path, record: Record) -> Row:
        """The folder's line in the list; the offered rate is the capacity that was found."""
        found = LoadAxis.of(record).capacity(record)
        of_exchange = "benchmark" not in record
        return self.row_with(
            folder,
            record,
            what="capacity" if of_exchange else f"capacity {record['benchmark']}",
            transports=(scheme_of(record["settings"]["transport"]),),
            orders_per_s=(round(found["value"]),) if found and of_exchange else (),
            runs=len(record["probes"]),
            planned_runs=len(record["probes"]),
            repeats=len(record.get("searches", [record])),
        )

    def found(self, first: Record, second: Record) -> Record:
        from exchange_simulation.reports.capacity.table import headline

        axes = [LoadAxis.of(record) for record in (first, second)]
        one, other = (axis.capacity(record) for axis, record in zip(axes, (first, second), strict=True))
        ratio = {"ratio": other["value"] / one["value"]} if one and other and axes[0] == axes[1] else {}
        title = f"capacity, {' and '.join(dict.fromkeys(axis.unit for axis in axes))}"
        found = {"field": title, "first": one, "second": other, **ratio}
        return {"answers": [headline(record) for record in (first, second)], "capacity": found}

    def show_found(self, difference: Record) -> None:
        print_lines(*map("{}: {}".format, "AB", difference["answers"]))
        print_rows("what was found", [difference["capacity"]], lambda _, found: _in_words(found), with_ratio=True)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:  # noqa: ARG002
        from exchange_simulation.experiments.capacity.capacity import capacity
        from exchange_simulation.experiments.capacity.search import search_settings_of
        from exchange_simulation.launching.files import dated_name

        record = self.read(folder)
        search, place = search_settings_of(record), Path(results) / (name or dated_name("capacity"))
        return capacity(self._load(folder, record, search), search, place, as_json)

    def _load(self, folder: Path, record: Record, search: SearchSettings) -> SearchedLoad:
        from exchange_simulation.experiments.capacity.exchange_rates import ExchangeRates, objective_of

        if "benchmark" in record:
            from exchange_simulation.messaging.turned_up import load_again

            warn_of_differences(record)
            return load_again(record, objective_of)
        settings = settings_of_record(folder / self.file, record["settings"])
        warn_of_differences(record, settings)
        return ExchangeRates(settings, objective_of(record["objective"]), search)


def _in_words(found: Record | None) -> str:
    """61,200 (59,800..63,900)"""
    if found is None:
        return "no edge"
    interval = "" if found["low"] is None else f" ({found['low']:,.0f}..{found['high']:,.0f})"
    return f"{found['value']:,.0f}{interval}"
