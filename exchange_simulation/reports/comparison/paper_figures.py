"""Our runs in the paper's layout: figures 8 and 9, on linear axes as there, and our values beside its printed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from string import ascii_lowercase

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange_simulation.reports.comparison.answer import NAGLE
from exchange_simulation.reports.comparison.figures import (
    contender_colours,
    contender_of,
    draw_arms,
    numbers_of_arms,
    rate_of,
    with_rate,
)
from exchange_simulation.reports.comparison.sentences import (
    IPOIB_CPU_PERCENT,
    IPOIB_MEAN_US,
    IPOIB_RATE,
    beside_the_rate,
)
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_x, linear_y
from exchange_simulation.reports.drawing.chart import Chart, EndLabel, label_ends
from exchange_simulation.reports.drawing.colours import MUTED
from exchange_simulation.reports.drawing.figures import Figure

Arms = dict[str, list[Record]]
"""The arms of each line, by its name."""

PARTS = {"broker": "a", "gateway": "b", "engine": "c"}
"""The parts of figure 9."""
RATES = (
    "Sent and received are one line each: a run in which they differ is invalid, and left out. Dashed: what was "
    "offered. Colours as in 8 (b); rates that are held lie upon each other."
)
COMPLETION = "Mean, from handing over, as the paper has it; medians over repeats."
CPU = "Of one core, all threads; medians over repeats."


def paper_figures(record: Record) -> Iterator[Figure]:
    """Yield the figures; the style of page or files must be set."""
    arms_by_figure = groups(record)
    if not arms_by_figure:
        return
    first = next(iter(arms_by_figure.values()))
    yield from _message_rate(first)
    for (words, arms), part in zip(
        arms_by_figure.items(), chain(ascii_lowercase[1:], map(str, count(27))), strict=False
    ):
        lines = lines_of(arms, "handed_over_mean_us")
        yield from _named(f"Figure 8 ({part}): order completion time{words}", lines, ("µs", "us"), COMPLETION)
    for component, part in PARTS.items():
        lines = lines_of(first, f"{component}_cpu_percent")
        yield from _named(f"Figure 9 ({part}): CPU utilisation of the {component}", lines, ("%", "percent"), CPU)


def groups(record: Record) -> dict[str, Arms]:
    """Return the lines of each figure by the end of its title; empty if there are not several rates.

    A line is a contender; in a study of Nagle's algorithm a transport, with a figure for each contender.
    """
    arms = with_rate(record)
    if len({rate_of(arm) for arm in arms}) < 2:
        return {}
    if record["study"] == NAGLE:
        return {
            f", {name}": grouped(of_contender, lambda arm: arm["settings"]["transport"])
            for name, of_contender in grouped(arms, contender_of).items()
        }
    return {factors: grouped(alike, contender_of) for factors, alike in grouped(arms, beside_the_rate).items()}


def _message_rate(arms: Arms) -> Iterator[Figure]:
    """Yield a figure, if anything was measured: orders below, answers above, with a line for each transport.

    Lines lie upon each other while rates are held.
    """
    lines: list[PaperLine] = []
    labels: list[EndLabel] = []
    for stream in ("orders", "answers"):
        of_stream = lines_of(arms, f"{stream}_per_s", f"{stream}, ")
        if of_stream:
            lines += of_stream
            labels.append(EndLabel(max(line.end for line in of_stream), stream, MUTED))
    if not lines:
        return
    chart = lines_against_rate(lines, "per second", "per_s", labels)
    highest = max(rate_of(arm) for line in lines for arm in line.arms)
    chart.axes.plot([0.0, highest], [0.0, highest], color=MUTED, linestyle="--", linewidth=1.2, zorder=1)
    yield Figure("Figure 8 (a): message rate", chart, RATES)


def _named(title: str, lines: list[PaperLine], unit: tuple[str, str], caption: str) -> Iterator[Figure]:
    """Yield a figure with each line named beside its end, if there is a line. `unit`: the axis' and the file's."""
    if lines:
        labels = [EndLabel(line.end, line.name, line.colour) for line in lines]
        yield Figure(title, lines_against_rate(lines, *unit, labels), caption)


@dataclass(frozen=True)
class PaperLine:
    """A metric of arms that all measured it, in the order of their rates."""

    name: str
    colour: str
    metric: str
    arms: list[Record]

    @property
    def end(self) -> float:
        return float(self.arms[-1]["metrics"][self.metric]["median"])


def lines_of(arms: dict[str, list[Record]], metric: str, before: str = "") -> list[PaperLine]:
    """Return a line for each name whose arms measured the metric; colours do not depend on which are left out."""
    colours = contender_colours(arms)
    lines: list[PaperLine] = []
    for name, of_line in arms.items():
        measured = [arm for arm in of_line if metric in arm["metrics"]]
        if measured:
            lines.append(PaperLine(before + name, colours[name], metric, sorted(measured, key=rate_of)))
    return lines


def lines_against_rate(lines: list[PaperLine], axis: str, unit: str, labels: list[EndLabel]) -> Chart:
    axes = empty_axes(axis, "orders/s")
    for line in lines:
        draw_arms(axes, line.name, line.arms, line.metric, line.colour)
    linear_x(axes, sorted({rate_of(arm) for line in lines for arm in line.arms}))
    linear_y(axes)
    label_ends(axes, labels)
    named = ((line.name, line.metric, arm) for line in lines for arm in line.arms)
    numbers = numbers_of_arms(named, unit)
    return Chart(axes, numbers, hover=numbers)


@dataclass(frozen=True)
class PublishedRow:
    """A row: title, the paper's value in words, and ours for each column; None where we measured none."""

    what: str
    paper: str
    ours: list[Record | None]


def published(record: Record) -> list[PublishedRow]:
    """Return the rows; empty if the comparison has no figures in the paper's layout."""
    arms_by_figure = groups(record)
    if not arms_by_figure:
        return []
    completion = [_completion(words, arms) for words, arms in arms_by_figure.items()]
    return [*completion, _busiest(next(iter(arms_by_figure.values())))]


def transports(record: Record) -> list[str]:
    """Return the titles of the columns with our values."""
    return list(next(iter(groups(record).values()), {}))


def _completion(words: str, arms: Arms) -> PublishedRow:
    """Return the row of the mean completion time at the rate that the paper printed it for."""
    nagle = "off"
    ours: list[Record | None] = []
    for of_line in arms.values():
        if any(arm["settings"]["nagle"] for arm in of_line):
            nagle = "on"
        at_rate = [arm for arm in of_line if rate_of(arm) == IPOIB_RATE]
        ours.append(at_rate[0]["metrics"].get("handed_over_mean_us") if at_rate else None)
    title = f"mean completion in µs, at {IPOIB_RATE:,.0f} orders/s{words}"
    return PublishedRow(title, f"{IPOIB_MEAN_US[nagle]:,}", ours)


def _busiest(arms: Arms) -> PublishedRow:
    """Return the row of the most CPU that any component used."""
    title = "CPU of the busiest component at any rate, in % of a core"
    return PublishedRow(title, f"up to {IPOIB_CPU_PERCENT}", [_most_cpu(of_line) for of_line in arms.values()])


def _most_cpu(arms: list[Record]) -> Record | None:
    """Return the estimate of the busiest component over all arms; None if none was measured."""
    used: list[Record] = []
    for arm in arms:
        used += [estimate for name, estimate in arm["metrics"].items() if name.endswith("_cpu_percent")]
    return max(used, key=lambda estimate: float(estimate["median"]), default=None)
