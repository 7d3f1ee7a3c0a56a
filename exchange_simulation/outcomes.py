"""Return values of this package's functions: a folder, its record, and the figures as attributes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exchange.percentiles import FIGURES
from exchange.second_columns import RATES
from exchange.words import counted
from exchange_simulation.launching.errors import naming_extras
from exchange_simulation.launching.record.noise_summary import NoiseSummary, noise_banner, noise_of
from exchange_simulation.reports.comparison.arm_rows import arm_rows
from exchange_simulation.reports.drawing.colours import LIGHT
from exchange_simulation.reports.exports import flat
from exchange_simulation.reports.formats.few_orders import has_enough_orders
from exchange_simulation.reports.formats.numbers import three_digits

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure as MatplotlibFigure

    from exchange_simulation.reports.drawing.figures import Figure as DrawnFigure

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
            available = ", ".join(f"{available_figure}_us" for available_figure in figures_us)
            raise AttributeError(f"completion times have no {name!r}; they have {available}")
        return figures_us[figure]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(f"{figure}_us" for figure in self.figures_us)]

    def __repr__(self) -> str:
        figures = (f"{figure}_us={value!r}" for figure, value in self.figures_us.items())
        return f"Times(count={self.count!r}, {', '.join(figures)})"


@dataclass(frozen=True)
class Estimate:
    """The median over repeats, and its 95 % interval; without an interval if there are too few repeats."""

    median: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> Estimate:
        """Return the estimate of a record's figure."""
        return cls(recorded["median"], recorded["low"], recorded["high"])

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return three_digits(self.median)
        return f"{three_digits(self.median)} ({three_digits(self.low)}..{three_digits(self.high)})"


@dataclass(frozen=True, repr=False)
class MeasuredOutcome:
    """The outcome of a measurement: its folder, and the record in it.

    docs/run-record.md has the fields of a run's record, docs/study-records.md those of others.
    """

    folder: Path
    record: Mapping[str, Any]

    @property
    def status(self) -> str:
        return str(self.record["status"])

    @property
    def started_at(self) -> str | None:
        """When the measurement began, in ISO 8601; None if that is unknown."""
        conditions = self.record.get("conditions") or {}
        started_at: str | None = self.record.get("started_at") or conditions.get("started_at")
        return started_at

    def __repr__(self) -> str:
        """For example: <Run results/first: complete: zeromq, 8,000 orders/s: p50 127 us, p99 402 us>"""
        return f"<{type(self).__name__} {self.folder}: {self}>"

    @property
    def plots(self) -> list[str]:
        """The names that `plot` takes. ModuleNotFoundError without the extra `report`, which brings matplotlib."""
        return list(self._figures_by_name())

    def plot(self, name: str | None = None) -> MatplotlibFigure:
        """Return a picture of the page as matplotlib's figure, the first unless `name` chooses one of `plots`.

        LookupError if there is no such picture; if there is none at all, the message says why.
        ModuleNotFoundError without the extra `report`, which brings matplotlib.
        """
        figures = self._figures_by_name()
        if not figures:
            raise LookupError(f"{self.folder} has no picture: {self._why_no_picture()}")
        if name is None:
            name = next(iter(figures))
        if name not in figures:
            raise LookupError(f"there is no picture {name!r}; there are {', '.join(figures)}")
        picture: MatplotlibFigure = figures[name].chart.figure
        return picture

    def _figures_by_name(self) -> dict[str, DrawnFigure]:
        """Draw the figures of the page, with their titles, in light colours."""
        with naming_extras():
            from exchange_simulation.reports.drawing.canvas import page_style

            figures = {}
            with page_style(LIGHT):
                for drawn in self._figures():
                    drawn.chart.axes.set_title(drawn.title, loc="left")
                    figures[drawn.name] = drawn
            return figures

    def _figures(self) -> Iterator[DrawnFigure]:
        """Yield the figures of the page; a style must be set."""
        raise NotImplementedError

    def _why_no_picture(self) -> str:
        """Return why `_figures` yields nothing, and where the figures are instead."""
        raise NotImplementedError

    @property
    def noise(self) -> NoiseSummary:
        """How many of the measurements were noisy; `noise.is_noisy` says whether the outcome is."""
        return noise_of(self.record)

    @property
    def page(self) -> Path | None:
        """The page, one offline file; None if none was written."""
        return min(self.folder.glob("*.html"), default=None)

    def rows(self) -> list[Row]:
        """Return the figures as flat rows; their keys are the columns of to_pandas and to_arrow."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a data frame. ModuleNotFoundError without the extra `spark`, which brings pandas."""
        with naming_extras():
            import pandas

        return pandas.DataFrame(self.rows())

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as a table. ModuleNotFoundError without the extra `spark`, which brings pyarrow."""
        with naming_extras():
            import pyarrow

        return pyarrow.Table.from_pandas(self.to_pandas(), preserve_index=False)

    def _repr_html_(self) -> str:
        """Return a notebook's view: the sentence, and the page with its pictures if there is a page."""
        sentence = f"<p><strong>{html.escape(str(self))}</strong></p>"
        if self.page is None:
            return sentence
        return sentence + FRAME.format(
            title=html.escape(self.folder.name), page=html.escape(self.page.read_text("utf-8"))
        )


@dataclass(frozen=True, repr=False)
class Run(MeasuredOutcome):
    """One run of the exchange. `rows` are its seconds; a rate is None in a second too short to have one."""

    @property
    def from_due(self) -> Times | None:
        """Completion times from due time; None for a run as fast as it goes, whose orders have no due time."""
        return self._times("due")

    @property
    def from_handing_over(self) -> Times | None:
        """Completion times from handing over to the transport; None if no order was answered."""
        return self._times("handed_over")

    def _times(self, clock: str) -> Times | None:
        figures_by_clock = self.record.get("completion_us") or {}
        figures = figures_by_clock.get(clock)
        return Times.of(figures) if figures else None

    @property
    def times(self) -> Times | None:
        """Completion times from due time; from handing over if no order was due."""
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
        orders_per_s: float | None = self.record["rates"].get("orders_per_s")
        return orders_per_s

    @property
    def cpu_s(self) -> dict[str, float]:
        """CPU seconds by component."""
        return {name: usage["cpu_s"] for name, usage in self.record["components"].items()}

    @property
    def reasons(self) -> list[str]:
        """Why the run is not complete; empty if it is."""
        return list(self.record["reasons"])

    def _figures(self) -> Iterator[DrawnFigure]:
        from exchange_simulation.reports.run.figures import run_figures
        from exchange_simulation.reports.run.run_folder import read_run_folder

        return run_figures(read_run_folder(self.folder))

    def _why_no_picture(self) -> str:
        return "fewer than two orders were measured, and the run was too short for lines over time"

    def rows(self) -> list[Row]:
        from exchange_simulation.reports.run.run_folder import read_run_folder
        from exchange_simulation.reports.run.seconds import RunSeconds

        seconds = RunSeconds(read_run_folder(self.folder))
        no_rates = dict.fromkeys(RATES.values())
        return [{"second": number, **no_rates, **seconds.row(number)} for number in seconds.numbers]

    def __str__(self) -> str:
        """For example: complete: zeromq, 8,000 orders/s: p50 127 us, p99 402 us."""
        sentence = f"{self.status}: {self.record['settings']['transport']}"
        if self.orders_per_s is not None:
            sentence += f", {self.orders_per_s:,.0f} orders/s"
        percentiles = []
        if self.times:
            for name, us in (("p50", self.times.p50_us), ("p99", self.times.p99_us)):
                if has_enough_orders(name, self.times.count):
                    percentiles.append(f"{name} {us:,.0f} us")
        if percentiles:
            sentence += f": {', '.join(percentiles)}"
        noise = noise_banner(self.record, "runs")
        return f"{sentence}; {noise}" if noise else sentence


@dataclass(frozen=True)
class Arm:
    """One combination of settings, with its metrics as attributes. For example: `arm.due_p50_us.median`."""

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
    """Whether two sides differ in a metric: two arms of a trial, or two transports of a benchmark at one point.

    `ratio` is first over second.
    """

    metric: str
    block: str
    """What the two sides have in common, as the rate of two arms, or the point of two transports."""
    first: str
    second: str
    outcome: str
    """differ, cannot tell, too noisy or not compared."""
    differs: bool
    ratio: float | None
    low: float | None
    high: float | None
    sentence: str

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> Verdict:
        return cls(
            metric=recorded["metric"],
            block=recorded["block"],
            first=recorded["first"],
            second=recorded["second"],
            outcome=recorded["outcome"],
            differs=recorded["outcome"] == "differ",
            ratio=recorded.get("ratio"),
            low=recorded.get("low"),
            high=recorded.get("high"),
            sentence=recorded["sentence"],
        )


@dataclass(frozen=True, repr=False)
class Comparison(MeasuredOutcome):
    """A trial of several arms, interleaved and repeated. `rows` are its arms."""

    @cached_property
    def arms(self) -> list[Arm]:
        return [
            Arm(
                label=arm["label"],
                transport=arm["settings"]["transport"],
                orders_per_s=arm["settings"]["orders_per_s"],
                metrics={name: Estimate.of(figure) for name, figure in arm["metrics"].items() if figure},
            )
            for arm in self.record["arms"]
        ]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return [Verdict.of(recorded) for recorded in self.record["verdicts"]]

    @property
    def caveats(self) -> list[str]:
        return list(self.record["caveats"])

    def _figures(self) -> Iterator[DrawnFigure]:
        from exchange_simulation.reports.comparison.figures import trial_figures

        return trial_figures(dict(self.record))

    def _why_no_picture(self) -> str:
        from exchange_simulation.reports.comparison.figures import why_no_figures

        return why_no_figures(dict(self.record))

    def rows(self) -> list[Row]:
        return [flat(row) for row in arm_rows(dict(self.record))]

    def __str__(self) -> str:
        from exchange_simulation.reports.comparison.answer import headline

        return headline(dict(self.record))


@dataclass(frozen=True, repr=False)
class Capacity(MeasuredOutcome):
    """The highest rate that holds an objective. `rows` are the runs that were made to find it."""

    @property
    def status(self) -> str:
        return str(self.record.get("status", "complete"))

    @property
    def orders_per_s(self) -> float | None:
        """The capacity; None if it lies beyond the rates that can be judged."""
        return self._estimate("value")

    @property
    def low_per_s(self) -> float | None:
        """The lower end of the interval that contains the capacity with 95 % probability."""
        return self._estimate("low")

    @property
    def high_per_s(self) -> float | None:
        """The upper end of that interval."""
        return self._estimate("high")

    def _estimate(self, name: str) -> float | None:
        estimate = self.record["capacity_orders_per_s"] or {}
        value: float | None = estimate.get(name)
        return value

    def _figures(self) -> Iterator[DrawnFigure]:
        from exchange_simulation.reports.capacity.page import capacity_figures

        return capacity_figures(dict(self.record))

    def _why_no_picture(self) -> str:
        return "no run was made to find the capacity"

    def rows(self) -> list[Row]:
        return [flat(probe) for probe in self.record["probes"]]

    def __str__(self) -> str:
        from exchange_simulation.reports.capacity.table import headline

        return headline(dict(self.record))


@dataclass(frozen=True, repr=False)
class Benchmark(MeasuredOutcome):
    """A messaging benchmark. `rows` are its cells: one point over one transport."""

    @property
    def reasons(self) -> list[str]:
        return list(self.record["reasons"])

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """A verdict for every two transports that were measured at the same point, by the benchmark's main figure."""
        from exchange_simulation.messaging.verdicts import comparison_of

        comparison = comparison_of(self.record)
        return [Verdict.of(recorded) for recorded in comparison["verdicts"]]

    def figure(self, name: str, transport: str, **point: object) -> Estimate:
        """Return a figure of the one cell with this transport and point. LookupError if there is none, or several.

        For example: `outcome.figure("messages_per_s", "zeromq", size_bytes=64)`.
        """
        names_of_figure = {"transport": transport, **point}
        cells = []
        for row in self.record["rows"]:
            names_of_cell = {"transport": row["transport"], **row["point"]}
            if names_of_figure.items() <= names_of_cell.items():
                cells.append(row)
        if len(cells) != 1:
            raise LookupError(f"{len(cells)} cells have {names_of_figure}; rows() lists the cells")
        figures = cells[0]["figures"]
        if name not in figures:
            raise LookupError(f"the cell has no figure {name}; it has {', '.join(figures)}")
        return Estimate.of(figures[name])

    def _figures(self) -> Iterator[DrawnFigure]:
        from exchange_simulation.messaging.plots import figures_of

        return figures_of(self.record)

    def _why_no_picture(self) -> str:
        return "a curve needs a figure at two points or more, such as two sizes; rows() has the figures"

    def rows(self) -> list[Row]:
        rows = []
        for part in self.record.get("parts", [self.record]):
            for row in part["rows"]:
                cell = {"transport": row["transport"], **row["point"], **flat(row["figures"])}
                if "parts" in self.record:
                    cell = {"benchmark": part["benchmark"], **cell}
                rows.append(cell)
        return rows

    def steps(self) -> list[Row]:
        """Return a flat row for each step of each cell whose load changes over time; none for cells of one rate.

        `step` is the number of the step in its load, from 1; `rate` is the step as a user types it, as 1000@2s.
        """
        rows = []
        for part in self.record.get("parts", [self.record]):
            for row in part["rows"]:
                cell = {"transport": row["transport"], **row["point"]}
                for number, step in enumerate(row.get("steps", ()), start=1):
                    row_of_step = {**cell, "step": number, "rate": step["step"], **flat(step["figures"])}
                    rows.append(
                        {"benchmark": part["benchmark"], **row_of_step} if "parts" in self.record else row_of_step
                    )
        return rows

    def __str__(self) -> str:
        cells = counted(len(self.rows()), "cells")
        return f"{self.record['benchmark']}, {self.status}: {self.record['about']}; {cells}"


@dataclass(frozen=True, repr=False)
class FaultMatrix(MeasuredOutcome):
    """A matrix of faults over transports. `rows` are its cells: one run with one fault."""

    def _figures(self) -> Iterator[DrawnFigure]:
        return iter(())

    def _why_no_picture(self) -> str:
        return "a fault matrix is a table; rows() has its cells"

    def rows(self) -> list[Row]:
        return [flat(cell) for cell in self.record["cells"]]

    def __str__(self) -> str:
        from exchange_simulation.reports.faults.table import answer

        head, *_ = answer(dict(self.record))
        return head


@dataclass(frozen=True, repr=False)
class SimulatedMarket(MeasuredOutcome):
    """The engine over many instruments. `rows` has the totals, and their spread over the instruments."""

    @property
    def orders_per_s(self) -> float:
        """Orders that were matched a second."""
        return float(self.record["rates"]["orders_per_s"])

    def _figures(self) -> Iterator[DrawnFigure]:
        return iter(())

    def _why_no_picture(self) -> str:
        return "a simulation is not drawn; rows() has its figures"

    def rows(self) -> list[Row]:
        spread = self.record["per_instrument"]
        return [
            {"message": name, "total": total, **spread.get(name, {})} for name, total in self.record["totals"].items()
        ]

    def __str__(self) -> str:
        settings = self.record["settings"]
        matched = f"{settings['orders']:,} orders of {settings['instruments']:,} instruments"
        return f"{self.status}: {matched}, {self.orders_per_s:,.0f} orders/s"


@dataclass(frozen=True, repr=False)
class PaperOutcome(MeasuredOutcome):
    """Everything that one paper measures. `rows` are its claims; each part is a folder of its own, see `parts`."""

    @property
    def parts(self) -> list[Path]:
        """The folders of the parts that were measured, for `open`."""
        folders = [self.folder / part["part"] for part in self.record["parts"]]
        return [folder for folder in folders if folder.is_dir()]

    def _figures(self) -> Iterator[DrawnFigure]:
        return iter(())

    def _why_no_picture(self) -> str:
        return "a paper's pictures are those of its parts: open(outcome.parts[0]).plot()"

    def rows(self) -> list[Row]:
        return [flat(claim) for claim in self.record["claims"]]

    def __str__(self) -> str:
        from exchange_simulation.papers.sentences import headline

        return f"{self.record['paper']}, {self.status}: {headline(dict(self.record))}"
