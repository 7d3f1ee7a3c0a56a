"""The seconds of a run as rows of figures, from the reporter's buckets and counts."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from exchange.json_records import Record, section
from exchange.measurements import LogBuckets
from exchange.second_figures import Facts
from exchange.seconds import is_analysed, is_full, merged
from exchange.workload import is_steady
from exchange_simulation.reports.formats.numbers import is_number
from exchange_simulation.reports.run.run_folder import RunFolder

Row = dict[str, Any]


class RunSeconds:
    """The seconds of one run. A row has the columns of Spark's table of seconds, as far as they are known."""

    def __init__(self, folder: RunFolder) -> None:
        self._offered = _offered_orders_per_s(folder.run)
        self._facts = Facts(folder.run.get("duration_s"))
        small = [record for kind in ("traffic", "process", "throughput") for record in folder.spool[kind]]
        self._facts.take({**record, **record["payload"]} for record in small)
        self._completions: defaultdict[int, defaultdict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
        for record in folder.spool["completion"]:
            if is_analysed(payload := record["payload"]):
                self._completions[payload["second"]][payload["clock"]].append(payload)
        counted = {record["payload"]["second"] for kind in ("traffic", "process") for record in folder.spool[kind]}
        self.numbers = sorted(counted | self._completions.keys())

    def facts(self, second: int) -> Row:
        """Return counts, rates and cores of a second."""
        return {"second": second, "offered_orders_per_s": self._offered, **self._facts.row(second)}

    def row(self, second: int) -> Row:
        """Return counts, rates, cores, and completion times by clock."""
        row = self.facts(second)
        for clock, payloads in self._completions[second].items():
            row |= {f"{clock}_{name}": value for name, value in _figures(merged(payloads)).items()}
        return row

    def means(self, name: str, point_s: int) -> dict[int, float]:
        """Return a rate's or a core count's mean over every `point_s` seconds, by point; only where it is known."""
        values: defaultdict[int, list[float]] = defaultdict(list)
        for second in self.numbers:
            if (value := self._facts.row(second).get(name)) is not None:
                values[second // point_s].append(value)
        return {point: sum(known) / len(known) for point, known in values.items()}

    def shown(self, most: int) -> list[Row | None]:
        """Return the rows of a table, without a last second of which neither a rate nor a time is known.

        None stands for the seconds in the middle, if there are more than `most`.
        """
        numbers = self.numbers[:-1] if self._ends_empty else self.numbers
        chosen = numbers if len(numbers) <= most else [*numbers[: most // 2], None, *numbers[-most // 2 :]]
        return [None if second is None else self.shown_row(second) for second in chosen]

    @property
    def _ends_empty(self) -> bool:
        if len(self.numbers) < 2:
            return False
        row = self.shown_row(self.numbers[-1])
        return row.get("orders_per_s") is None and "handed_over_count" not in row

    def shown_row(self, second: int) -> Row:
        """Return the row of a second; the times of a thin end are left out."""
        is_thin = second == self.numbers[-1] and self.ends_thin
        return self.facts(second) if is_thin else self.row(second)

    @property
    def ends_thin(self) -> bool:
        """True if the last second holds a handful of orders only, so that its times say little."""
        answered = (self._completions[second]["handed_over"] for second in self.numbers)
        counts = [sum(payload["count"] for payload in payloads) for payloads in answered]
        return bool(counts) and not is_full(counts[-1], [count for count in counts[:-1] if count])


def _offered_orders_per_s(run: Record) -> float | None:
    """Return the rate that every second was offered; None where it changes, or if there is no schedule."""
    settings = section(run, "settings")
    offered = section(run, "rates").get("offered_orders_per_s", settings.get("orders_per_s"))
    return offered if is_number(offered) and is_steady(settings.get("arrivals", "fixed")) else None


def _figures(buckets: LogBuckets) -> Row:
    figures = buckets.figures_us()
    times = {f"{name}_us": value for name, value in figures.items() if name != "count"}
    return {"count": buckets.count, "min_us": buckets.min_ns / 1e3, **times}
