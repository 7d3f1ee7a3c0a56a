"""Our runs in the paper's layout: figures 8 and 9, on linear axes as there, and our values beside its printed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from string import ascii_lowercase

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
from exchange_simulation.reports.exports import grouped

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
    """The figures; the style of page or files must be set."""
    found = groups(record)
    if not found:
        return
    first = next(iter(found.values()))
    yield from _message_rate(first)
    for (words, arms), part in zip(found.items(), chain(ascii_lowercase[1:], map(str, count(27))), strict=False):
        lines = lines_of(arms, "handed_over_mean_us")
        yield from _named(f"Figure 8 ({part}): order completion time{words}", lines, ("µs", "us"), COMPLETION)
    for component, part in PARTS.items():
        lines = lines_of(first, f"{component}_cpu_percent")
        yield from _named(f"Figure 9 ({part}): CPU utilisation of the {component}", lines, ("%", "percent"), CPU)


def groups(record: Record) -> dict[str, Arms]:
    """The lines of each figure by the end of its title; empty if there are not several rates.

    A line is a contender; in a study of Nagle's algorithm a transport, with a figure for each contender.
    """
    arms = with_rate(record)
    if len({rate_of(arm) for arm in arms}) < 2:
        return {}
    if record["study"] == NAGLE:
        contenders = grouped(arms, contender_of)
        return {f", {name}": grouped(own, lambda arm: arm["settings"]["transport"]) for name, own in contenders.items()}
    return {words: grouped(own, contender_of) for words, own in grouped(arms, beside_the_rate).items()}


def _message_rate(arms: Arms) -> Iterator[Figure]:
    """Orders below, answers above, with a line for each transport; lines lie upon each other while rates are held."""
    found = {what: lines_of(arms, f"{what}_per_s", f"{what}, ") for what in ("orders", "answers")}
    lines = [line for own in found.values() for line in own]
    if not lines:
        return
    labels = [EndLabel(max(line.end for line in own), what, MUTED) for what, own in found.items() if own]
    chart = lines_against_rate(lines, "per second", "per_s", labels)
    highest = max(rate_of(arm) for line in lines for arm in line.arms)
    chart.axes.plot([0.0, highest], [0.0, highest], color=MUTED, linestyle="--", linewidth=1.2, zorder=1)
    yield Figure("Figure 8 (a): message rate", chart, RATES)


def _named(title: str, lines: list[PaperLine], unit: tuple[str, str], caption: str) -> Iterator[Figure]:
    """A figure with each line named beside its end, or none if there is no line. `unit`: the axis' and the file's."""
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
    """A line for each name whose arms measured the metric; a name's colour does not depend on which are left out."""
    measured = {name: sorted((a for a in own if metric in a["metrics"]), key=rate_of) for name, own in arms.items()}
    colours = contender_colours(arms)
    return [PaperLine(before + name, colours[name], metric, own) for name, own in measured.items() if own]


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
    """The rows; empty if the comparison has no figures in the paper's layout."""
    found = groups(record)
    completion = [_completion(words, arms) for words, arms in found.items()]
    return [*completion, _busiest(next(iter(found.values())))] if found else []


def transports(record: Record) -> list[str]:
    """The titles of the columns with our values."""
    return list(next(iter(groups(record).values()), {}))


def _completion(words: str, arms: Arms) -> PublishedRow:
    has_nagle = any(arm["settings"]["nagle"] for own in arms.values() for arm in own)
    what = f"mean completion in µs, at {IPOIB_RATE:,.0f} orders/s{words}"
    at_rate = {name: next((arm for arm in own if rate_of(arm) == IPOIB_RATE), None) for name, own in arms.items()}
    ours = [arm["metrics"].get("handed_over_mean_us") if arm else None for arm in at_rate.values()]
    return PublishedRow(what, f"{IPOIB_MEAN_US['on' if has_nagle else 'off']:,}", ours)


def _busiest(arms: Arms) -> PublishedRow:
    what = "CPU of the busiest component at any rate, in % of a core"
    return PublishedRow(what, f"up to {IPOIB_CPU_PERCENT}", [_most(own) for own in arms.values()])


def _most(arms: list[Record]) -> Record | None:
    used = [found for arm in arms for name, found in arm["metrics"].items() if name.endswith("_cpu_percent")]
    return max(used, key=lambda estimate: float(estimate["median"]), default=None)
