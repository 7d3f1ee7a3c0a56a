"""Return values of this package's functions: a folder, its record, and the figures as attributes."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exchange.percentiles import FIGURES
from exchange.second_columns import RATES
from exchange_simulation.reports.exports import flat, trial_rows
from exchange_simulation.reports.formats import is_told, three_digits

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = dict[str, Any]
FRAME = '<iframe title="{title}" srcdoc="{page}" style="width: 100%; height: 640px; border: 0"></iframe>'


@dataclass(frozen=True, repr=False)
class Times:
    """Completion times from one clock reading: their number, and each figure in microseconds as an attribute.

    For example: `times.mean_us`, `times.p50_us`, `times.p99_us`, `times.max_us`.
    """

    count: int
    figures_us: Mapping[str, float]
    """By name: mean, the percentiles, max."""

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> Times:
        """Return the figures of one clock in run.json. An older version's record may lack a percentile."""
        return cls(figures["count"], {name: figures[name] for name in FIGURES if name in figures})

    def __getattr__(self, name: str) -> float:
        figures_us: Mapping[str, float] = object.__getattribute__(self, "figures_us")
        figure = name.removesuffix("_us")
        if name == figure or figure not in figures_us:
            there_are = ", ".join(f"{figure}_us" for figure in figures_us)
            raise AttributeError(f"completion times have no {name!r}; they have {there_are}")
        return figures_us[figure]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(f"{figure}_us" for figure in self.figures_us)]

    def __repr__(self) -> str:
        figures = (f"{figure}_us={value!r}" for figure, value in self.figures_us.items())
        return f"Times(count={self.count!r}, {', '.join(figures)})"


@dataclass(frozen=True)
class Estimate:
    """The median over repeats, and its 95 % interval; no interval of too few repeats."""

    median: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Estimate:
        return cls(found["median"], found["low"], found["high"])

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return three_digits(self.median)
        return f"{three_digits(self.median)} ({three_digits(self.low)}..{three_digits(self.high)})"


@dataclass(frozen=True)
class MeasuredOutcome:
    """The folder and the record, as written there; docs/run-record.md has the record's fields."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def status(self) -> str:
        return str(self.record["status"])

    @property
    def page(self) -> Path | None:
        """The page, one offline file; None if none was written."""
        return next((path for path in sorted(self.folder.glob("*.html"))), None)

    def rows(self) -> list[Row]:
        """The figures as flat rows; the columns of to_pandas and to_arrow."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame(self.rows())

    def to_arrow(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.Table.from_pandas(self.to_pandas(), preserve_index=False)

    def _repr_html_(self) -> str:
        """The page, with its pictures, in a notebook; the sentence alone if there is no page."""
        sentence = f"<p><strong>{html.escape(str(self))}</strong></p>"
        if self.page is None:
            return sentence
        return sentence + FRAME.format(
            title=html.escape(self.folder.name), page=html.escape(self.page.read_text("utf-8"))
        )


@dataclass(frozen=True)
class Run(MeasuredOutcome):
    """One run of the exchange. `rows` are its seconds; a rate is None in a second too short to have one."""

    @property
    def from_due(self) -> Times | None:
        """Completion times from due time; None of a run as fast as it goes."""
        return self._times("due")

    @property
    def from_handing_over(self) -> Times | None:
        return self._times("handed_over")

    def _times(self, clock: str) -> Times | None:
        found = (self.record.get("completion_us") or {}).get(clock)
        return Times.of(found) if found else None

    @property
    def times(self) -> Times | None:
        """From due time; from handing over if no order was due."""
        return self.from_due or self.from_handing_over

    @property
    def p50_us(self) -> float | None:
        return self.times.p50_us if self.times else None

    @property
    def p99_us(self) -> float | None:
        return self.times.p99_us if self.times else None

    @property
    def orders_per_s(self) -> float | None:
        """The achieved rate."""
        found: float | None = self.record["rates"].get("orders_per_s")
        return found

    @property
    def cpu_s(self) -> dict[str, float]:
        """CPU seconds by component."""
        return {name: usage["cpu_s"] for name, usage in self.record["components"].items()}

    @property
    def reasons(self) -> list[str]:
        """Why the run is not complete; empty if it is."""
        return list(self.record["reasons"])

    def rows(self) -> list[Row]:
        from exchange_simulation.reports.run.run_folder import read_run_folder
        from exchange_simulation.reports.run.seconds import Seconds

        seconds = Seconds(read_run_folder(self.folder))
        no_rates = dict.fromkeys(RATES.values())
        return [{"second": number, **no_rates, **seconds.row(number)} for number in seconds.numbers]

    def __str__(self) -> str:
        times, rate = self.times, self.orders_per_s
        achieved = "" if rate is None else f", {rate:,.0f} orders/s"
        figures = {"p50": times.p50_us, "p99": times.p99_us} if times else {}
        percentiles = [f"{name} {us:,.0f} us" for name, us in figures.items() if times and is_told(name, times.count)]
        found = ": " + ", ".join(percentiles) if percentiles else ""
        return f"{self.status}: {self.record['settings']['transport']}{achieved}{found}"


@dataclass(frozen=True)
class Arm:
    """One combination of settings; its metrics by name, as due_p50_us."""

    label: str
    transport: str
    orders_per_s: float | None
    metrics: Mapping[str, Estimate]

    def __getattr__(self, name: str) -> Estimate:
        try:
            metrics: Mapping[str, Estimate] = object.__getattribute__(self, "metrics")
            return metrics[name]
        except KeyError:
            raise AttributeError(f"no metric {name!r}; there are {', '.join(metrics)}") from None


@dataclass(frozen=True)
class Verdict:
    """Whether two arms differ in a metric. `ratio` is first over second."""

    metric: str
    block: str
    first: str
    second: str
    differs: bool
    ratio: float | None
    low: float | None
    high: float | None
    sentence: str


@dataclass(frozen=True)
class Comparison(MeasuredOutcome):
    """A trial of several arms, interleaved and repeated. `rows` are its arms."""

    @cached_property
    def arms(self) -> list[Arm]:
        return [
            Arm(
                label=arm["label"],
                transport=arm["settings"]["transport"],
                orders_per_s=arm["settings"]["orders_per_s"],
                metrics={name: Estimate.of(found) for name, found in arm["metrics"].items() if found},
            )
            for arm in self.record["arms"]
        ]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        same = ("metric", "block", "first", "second", "sentence")
        return [
            Verdict(
                **{name: found[name] for name in same},
                **{name: found.get(name) for name in ("ratio", "low", "high")},
                differs=found["outcome"] == "differ",
            )
            for found in self.record["verdicts"]
        ]

    @property
    def caveats(self) -> list[str]:
        return list(self.record["caveats"])

    def rows(self) -> list[Row]:
        return [flat(row) for row in trial_rows(dict(self.record))]

    def __str__(self) -> str:
        from exchange_simulation.reports.comparison.answer import headline

        return headline(dict(self.record))


@dataclass(frozen=True)
class Capacity(MeasuredOutcome):
    """The highest rate that holds an objective. `rows` are the runs that were made to find it."""

    @property
    def status(self) -> str:
        return str(self.record.get("status", "complete"))

    @property
    def orders_per_s(self) -> float | None:
        """None if no edge was found."""
        return self._found("value")

    @property
    def low_per_s(self) -> float | None:
        return self._found("low")

    @property
    def high_per_s(self) -> float | None:
        return self._found("high")

    def _found(self, name: str) -> float | None:
        found: float | None = (self.record["capacity_orders_per_s"] or {}).get(name)
        return found

    def rows(self) -> list[Row]:
        return [flat(probe) for probe in self.record["probes"]]

    def __str__(self) -> str:
        from exchange_simulation.reports.capacity.table import headline

        return headline(dict(self.record))


@dataclass(frozen=True)
class Benchmark(MeasuredOutcome):
    """A messaging benchmark. `rows` are its cells: one point over one transport."""

    @property
    def reasons(self) -> list[str]:
        return list(self.record["reasons"])

    def figure(self, name: str, transport: str, **point: object) -> Estimate:
        """A figure of the one cell with this transport and point, as size_bytes=64. LookupError if there is no such."""
        wanted = {"transport": transport, **point}
        cells = ((row, {"transport": row["transport"], **row["point"]}) for row in self.record["rows"])
        found = [row for row, own in cells if wanted.items() <= own.items()]
        if len(found) != 1:
            raise LookupError(f"{len(found)} cells have {wanted}; rows() lists the cells")
        figures = found[0]["figures"]
        if name not in figures:
            raise LookupError(f"the cell has no figure {name}; it has {', '.join(figures)}")
        return Estimate.of(figures[name])

    def rows(self) -> list[Row]:
        return [{"transport": row["transport"], **row["point"], **flat(row["figures"])} for row in self.record["rows"]]

    def __str__(self) -> str:
        about, cells = self.record["about"], len(self.record["rows"])
        return f"{self.record['benchmark']}, {self.status}: {about}; {cells} cells"
