"""The seconds of a run as rows of figures, from the reporter's buckets and counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from exchange.json_records import Record
from exchange.measurements import LogBuckets
from exchange.second_figures import Facts
from exchange.seconds import is_analysed, is_full, merged
from exchange_simulation.reports.run.offered_load import LoadOfRun
from exchange_simulation.reports.run.run_folder import RunFolder

Row = dict[str, Any]


class RunSeconds:
    """The seconds of one run. A row has the columns of Spark's table of seconds, as far as they are known."""

    def __init__(self, folder: RunFolder) -> None:
        self._offered = LoadOfRun.of_run(folder.run)
        self._facts = Facts(folder.run.get("duration_s"))
        spool = folder.spool
        for kind in ("traffic", "process", "throughput"):
            self._facts.take({**record, **record["payload"]} for record in spool[kind])
        self._completions: defaultdict[int, defaultdict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
        """The payloads of completion records, by second and clock."""
        for record in spool["completion"]:
            payload = record["payload"]
            if is_analysed(payload):
                self._completions[payload["second"]][payload["clock"]].append(payload)
        numbers = set(self._completions)
        numbers.update(record["payload"]["second"] for record in spool["traffic"])
        numbers.update(record["payload"]["second"] for record in spool["process"])
        self.numbers = sorted(numbers)
        """The numbers of the run's seconds."""

    def facts(self, second: int) -> Row:
        """Return counts, rates and cores of a second."""
        offered_orders_per_s = self._offered.in_second(second)
        return {"second": second, "offered_orders_per_s": offered_orders_per_s, **self._facts.row(second)}

    def row(self, second: int) -> Row:
        """Return counts, rates, cores, and completion times by clock."""
        return {**self.facts(second), **self.times_over([second])}

    def times_over(self, seconds: Iterable[int]) -> Row:
        """Return the completion times by clock of the orders that were answered in these seconds."""
        payloads_by_clock: defaultdict[str, list[Record]] = defaultdict(list)
        for second in seconds:
            for clock, payloads in self._completions[second].items():
                payloads_by_clock[clock] += payloads
        row: Row = {}
        for clock, payloads in payloads_by_clock.items():
            row |= {f"{clock}_{name}": value for name, value in _figures(merged(payloads)).items()}
        return row

    def means(self, figure: str, point_s: int) -> dict[int, float]:
        """Return a rate's or a core count's mean over every `point_s` seconds, by point; only where it is known."""
        values: defaultdict[int, list[float]] = defaultdict(list)
        for second in self.numbers:
            value = self._facts.row(second).get(figure)
            if value is not None:
                values[second // point_s].append(value)
        return {point: sum(of_point) / len(of_point) for point, of_point in values.items()}

    def table_rows(self, most: int) -> list[Row | None]:
        """Return the rows of a table, without a last second that has neither a rate nor a time.

        None stands for the seconds in the middle, if there are more than `most`.
        """
        numbers = self.numbers[:-1] if self._ends_empty else self.numbers
        if len(numbers) <= most:
            return [self.table_row(second) for second in numbers]
        half = most // 2
        first_rows = [self.table_row(second) for second in numbers[:half]]
        last_rows = [self.table_row(second) for second in numbers[-half:]]
        return [*first_rows, None, *last_rows]

    @property
    def _ends_empty(self) -> bool:
        if len(self.numbers) < 2:
            return False
        row = self.table_row(self.numbers[-1])
        return row.get("orders_per_s") is None and "handed_over_count" not in row

    def table_row(self, second: int) -> Row:
        """Return the row of a second; a last second of a few orders has no completion times."""
        if second == self.numbers[-1] and self.ends_thin:
            return self.facts(second)
        return self.row(second)

    @property
    def ends_thin(self) -> bool:
        """True if the last second holds a handful of orders only, so that its times say little."""
        if not self.numbers:
            return False
        counts = []
        for second in self.numbers:
            payloads = self._completions[second]["handed_over"]
            counts.append(sum(payload["count"] for payload in payloads))
        *earlier_counts, last_count = counts
        return not is_full(last_count, [count for count in earlier_counts if count])


def _figures(buckets: LogBuckets) -> Row:
    """Return the count, and each time in microseconds as a field that ends with _us."""
    row: Row = {"count": buckets.count, "min_us": buckets.min_ns / 1e3}
    for figure, value in buckets.figures_us().items():
        if figure != "count":
            row[f"{figure}_us"] = value
    return row
