"""A simulation's folder: simulation.json is written last, after the files of instruments and trades."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exchange.allowed import BadSetting
from exchange.json_records import Record
from exchange.record_kinds import SimulationRecord
from exchange.words import counted
from exchange_simulation.cli.results.difference import differing, print_lines, print_rows
from exchange_simulation.cli.results.kind import FolderKind, ListedFolder
from exchange_simulation.cli.results.rerun import warn_of_differences
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.reading import ERRORS_OF_DAMAGE
from exchange_simulation.reports.formats.numbers import axis_number


class SimulationKind(FolderKind):
    name = "simulation"
    file = "simulation.json"
    record = SimulationRecord
    shown_by = "exchange_simulation.experiments.simulate.simulate:show"
    marks = (file, "instruments.parquet", "market", "trades")
    unfinished = "the simulation goes on, or was killed"
    fields = ("master", "partitions")
    caveat = "The same settings must give the same checksums; speed is the machine's, and the hour's."

    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        """The folder's line has no offered rate or completion time; words say how much was matched, and how fast."""
        orders = record["settings"]["orders"]
        instruments = counted(record["settings"]["instruments"], "instruments")
        speed = f"{record['rates']['orders_per_s'] / 1e6:.3g} M/s"
        return self.row_with(folder, record, words=f"{axis_number(orders)} orders, {instruments}, {speed}")

    def findings(self, first: Record, second: Record) -> Record:
        first_per_s = first["rates"]["orders_per_s"]
        second_per_s = second["rates"]["orders_per_s"]
        return {
            "found": [
                *differing(first["totals"], second["totals"], "totals."),
                *differing(first["checksums"], second["checksums"], "checksums."),
            ],
            "same_streams": {
                name: first["checksums"][name] == second["checksums"][name] for name in ("orders", "answers")
            },
            "speed": {
                "field": "orders/s",
                "first": first_per_s,
                "second": second_per_s,
                "ratio": second_per_s / first_per_s,
            },
        }

    def show_findings(self, difference: Record) -> None:
        same_streams = [name for name, is_same in difference["same_streams"].items() if is_same]
        if same_streams:
            print_lines(f"the same checksums of {' and of '.join(same_streams)}")
        else:
            print_lines("neither orders nor answers are the same")
        if difference["found"]:
            print_rows("what came out", difference["found"])
        print_rows("speed", [difference["speed"]], lambda _, speed: f"{speed:,.0f}", with_ratio=True)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        """Simulate again. Without Spark the simulation runs in this process; the result is the same."""
        from exchange_simulation.experiments.simulate.simulate import simulate
        from exchange_simulation.experiments.simulate.simulation import Simulation

        record = self.read(folder)
        written = record["settings"]
        try:
            simulation = Simulation(**{**written, "prices": tuple(written["prices"])})
        except (BadSetting, *ERRORS_OF_DAMAGE) as error:
            raise UserError(f"{folder / self.file} holds settings that cannot be simulated: {error}") from error
        warn_of_differences(record)
        return simulate(
            simulation,
            _master_of(record, with_spark),
            record["partitions"],
            results,
            name,
            **_events_of(record),
            as_json=as_json,
        )


def _master_of(record: Record, with_spark: bool | None) -> str:
    """Return the recorded master; `none` without Spark, and the usual master if only the user wants Spark."""
    from exchange_simulation.experiments.simulate.simulate import WITHOUT_SPARK

    if with_spark is False:
        return WITHOUT_SPARK
    if with_spark and record["master"] == WITHOUT_SPARK:
        from exchange_simulation.experiments.pipeline.masters import MASTER

        return MASTER
    return str(record["master"])


def _events_of(record: Record) -> dict[str, Any]:
    """The tables of events that the simulation made. Those of older versions had trades only."""
    events = record.get("events") or {"trades": record.get("trades"), "orders_per_s": 1_000.0}
    tables = [table for table in ("orders", "trades", "confirmations", "quotes") if events.get(table)]
    return {"events": tables, "orders_per_s": events["orders_per_s"]}
