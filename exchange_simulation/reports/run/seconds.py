"""The seconds of a run as rows of figures, from the reporter's buckets and counts; and as a table in the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exchange.json_records import Record, section
from exchange.measurements import LogBuckets
from exchange.second_figures import Facts
from exchange.seconds import is_analysed, is_full, merged
from exchange.workload import is_steady
from exchange_simulation.reports.formats import COLUMNS, cells, is_number, not_told, number
from exchange_simulation.reports.run.run_folder import RunFolder, is_scheduled, lasts_a_second
from exchange_simulation.reports.tables import FoldingTable, key, plain_table, terminal

Row = dict[str, Any]
HEADINGS = {
    "offered": "orders/s\noffered",
    "sent": "\nsent",
    "answered": "\nanswered",
    "p50 us": "us, {clock}\np50",
    "p99 us": "\np99",
    "max us": "\nmax",
    "handed over p50": "handed\nover p50",
    "gateway": "cores\ngateway",
    "engine": "\nengine",
}
CLOCK_WORDS = {"due": "due", "handed_over": "handed over"}
LEFT_OUT = ("lag p99",)
"""The columns for which 80 characters leave no room: due minus handed over tells the lag."""
WITH_A_SCHEDULE = ("offered", "handed over p50")
"""The columns that a run as fast as it goes lacks: its completion times are from handing over already."""
RATES_A_SECOND = ("offered", "sent", "answered")
"""The columns that a run of under a second lacks."""
MOST_ROWS = 12


class Seconds:
    """The seconds of one run. A row has the columns of Spark's table of seconds, as far as they are known."""

    def __init__(self, folder: RunFolder) -> None:
        self._offered = _offered_each_second(folder.run)
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
        """Counts, rates and cores."""
        return {"second": second, "offered_orders_per_s": self._offered, **self._facts.row(second)}

    def row(self, second: int) -> Row:
        """Counts, rates, cores, and completion times by clock."""
        row = self.facts(second)
        for clock, payloads in self._completions[second].items():
            row |= {f"{clock}_{name}": value for name, value in _figures(merged(payloads)).items()}
        return row

    def means(self, name: str, point_s: int) -> dict[int, float]:
        """A rate's or a core count's mean over every `point_s` seconds, by point; only where it is known."""
        values: defaultdict[int, list[float]] = defaultdict(list)
        for second in self.numbers:
            if (value := self._facts.row(second).get(name)) is not None:
                values[second // point_s].append(value)
        return {point: sum(known) / len(known) for point, known in values.items()}

    def shown(self, most: int) -> list[Row | None]:
        """The rows of a table, without a last second of which neither a rate nor a time is known.

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
        """The row of a second; the times of a thin end are left out."""
        is_thin = second == self.numbers[-1] and self.ends_thin
        return self.facts(second) if is_thin else self.row(second)

    @property
    def ends_thin(self) -> bool:
        """True if the last second holds a handful of orders only, so that its times say little."""
        answered = (self._completions[second]["handed_over"] for second in self.numbers)
        counts = [sum(payload["count"] for payload in payloads) for payloads in answered]
        return bool(counts) and not is_full(counts[-1], [count for count in counts[:-1] if count])


def _offered_each_second(run: Record) -> float | None:
    """The rate that every second was offered; None where it changes, or if there is no schedule."""
    settings = section(run, "settings")
    offered = section(run, "rates").get("offered_orders_per_s", settings.get("orders_per_s"))
    return offered if is_number(offered) and is_steady(settings.get("arrivals", "fixed")) else None


def _figures(buckets: LogBuckets) -> Row:
    figures = buckets.figures_us()
    times = {f"{name}_us": value for name, value in figures.items() if name != "count"}
    return {"count": buckets.count, "min_us": buckets.min_ns / 1e3, **times}


MOST_ON_A_PAGE = 100
ON_A_PAGE = {
    "offered": "offered_orders_per_s",
    "sent": "orders_per_s",
    "answered": "answered_orders_per_s",
    "p50": "{clock}_p50_us",
    "p99": "{clock}_p99_us",
    "max": "{clock}_max_us",
    "p50 handed over": "handed_over_p50_us",
    "p99 handed over": "handed_over_p99_us",
    "lag p99": "lag_p99_us",
    "gateway": "gateway_cpu_cores",
    "engine": "engine_cpu_cores",
}


@dataclass(frozen=True)
class SecondsTable:
    """The table of a page; a row of None stands for seconds that are left out."""

    columns: list[str]
    rows: list[tuple[int, list[str]] | None]


def seconds_table(folder: RunFolder) -> SecondsTable:
    seconds, scheduled = Seconds(folder), is_scheduled(folder.run)
    clock = "due" if scheduled else "handed_over"
    of_clock = {title: name.format(clock=clock) for title, name in ON_A_PAGE.items()}
    without_schedule = () if scheduled else ("offered", "p50 handed over", "p99 handed over", "lag p99")
    left_out = (*without_schedule, *(() if lasts_a_second(folder) else RATES_A_SECOND))
    columns = {title: name for title, name in of_clock.items() if title not in left_out}
    rows = [(row["second"], list(_words(row, columns))) if row else None for row in seconds.shown(MOST_ON_A_PAGE)]
    return SecondsTable(list(columns), rows)


def _words(row: Row, columns: dict[str, str]) -> Iterator[str]:
    """Cores have two decimals; an unknown value is empty."""
    for name in columns.values():
        value = row.get(name)
        words = "" if value is None else f"{value:.2f}" if name.endswith("_cores") else number(value)
        yield (words and not_told(row, name)) or words


def show_seconds(folder: RunFolder) -> None:
    """Print a row for every second, or for the first and the last few of a long run."""
    seconds = Seconds(folder)
    if seconds.numbers:
        terminal().print(_table(seconds, is_scheduled(folder.run), lasts_a_second(folder)))


def _table(seconds: Seconds, scheduled: bool, has_rates: bool) -> FoldingTable:
    clock = "due" if scheduled else "handed_over"
    left_out = (*LEFT_OUT, *(() if scheduled else WITH_A_SCHEDULE), *(() if has_rates else RATES_A_SECOND))
    columns = {title: how for title, how in COLUMNS.items() if title not in left_out}
    first, *others = (HEADINGS.get(title, title).format(clock=CLOCK_WORDS[clock]) for title in columns)
    table = plain_table(key(first, from_right=True), *others, gap=1)
    for row in seconds.shown(MOST_ROWS):
        table.add_row(*(cells(row, clock, columns) if row else ["..."] * len(columns)))
    return table
