"""Our runs in the paper's layout: figures 8 and 9 on linear axes, and our values beside the paper's printed values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase

from matplotlib.axes import Axes

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange_simulation.reports.comparison.answer import NAGLE
from exchange_simulation.reports.comparison.figures import (
    RatePoint,
    arms_with_rate,
    by_medium,
    contender_colours,
    contender_of,
    draw_arms,
    numbers_of_points,
    rate_of,
)
from exchange_simulation.reports.comparison.paper_values import IPOIB_CPU_PERCENT, IPOIB_MEAN_US, IPOIB_RATE
from exchange_simulation.reports.comparison.sentences import factors_beside_rate
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_x, linear_y
from exchange_simulation.reports.drawing.chart import Chart, EndLabel, label_ends
from exchange_simulation.reports.drawing.colours import MUTED
from exchange_simulation.reports.drawing.figures import Figure

ArmsByLine = dict[str, list[Record]]
"""The arms of each line of a figure, by the line's name."""

LETTERS_OF_FIGURE_9 = {"broker": "a", "gateway": "b", "engine": "c"}
RATES_CAPTION = (
    "Sent and received are one line each: a run in which they differ is invalid, and left out. Rings: means of the "
    "meters' samples, as the paper has it. Dashed: what was offered. Colours as in 8 (b); lines of rates that were "
    "held overlap."
)
COMPLETION_CAPTION = (
    "Mean of all orders, from handing over; rings: mean of the sampled orders alone, as the paper has it. Medians over "
    "repeats."
)
SAMPLED = {
    "orders_per_s": ("sampled_orders_sent_per_s", "sampled_orders_received_per_s"),
    "answers_per_s": ("sampled_messages_sent_per_s", "sampled_messages_received_per_s"),
    "handed_over_mean_us": ("sampled_handed_over_mean_us",),
}
"""The metrics of samples beside an exact one; sent and received have a meter each."""
CPU_CAPTION = "Of one core, all threads; medians over repeats."


def paper_figures(record: Record) -> Iterator[Figure]:
    """Yield the figures; the style of page or files must be set."""
    arms_by_figure = arms_by_title_suffix(record)
    if not arms_by_figure:
        return
    first_arms = next(iter(arms_by_figure.values()))
    yield from _message_rate(first_arms)
    for index, (title_suffix, arms) in enumerate(arms_by_figure.items(), start=1):
        title = f"Figure 8 ({_letter(index)}): order completion time{title_suffix}"
        lines = lines_of(arms, "handed_over_mean_us")
        yield from _figure_if_any(title, lines, axis_unit="µs", file_unit="us", caption=COMPLETION_CAPTION)
    for component, letter in LETTERS_OF_FIGURE_9.items():
        title = f"Figure 9 ({letter}): CPU utilisation of the {component}"
        lines = lines_of(first_arms, f"{component}_cpu_percent")
        yield from _figure_if_any(title, lines, axis_unit="%", file_unit="percent", caption=CPU_CAPTION)


def _letter(index: int) -> str:
    """Return the letter of a figure's part: a for index 0; beyond z the part's number, from 27 on."""
    if index < len(ascii_lowercase):
        return ascii_lowercase[index]
    return str(index + 1)


def arms_by_title_suffix(record: Record) -> dict[str, ArmsByLine]:
    """Return the arms of each figure by the words that end the figure's title; empty if all have one rate.

    A study of Nagle's algorithm has a figure for each contender, in which each transport is a line, or each transport
    on each network if there are several. Any other study has a figure for each combination of the factors beside the
    rate, in which each contender is a line.
    """
    arms = arms_with_rate(record)
    if len({rate_of(arm) for arm in arms}) < 2:
        return {}
    arms_by_figure = {}
    if record["study"] == NAGLE:
        for contender, arms_of_contender in grouped(arms, contender_of).items():
            arms_by_figure[f", {contender}"] = by_medium(arms_of_contender)
    else:
        for factors, arms_with_factors in grouped(arms, factors_beside_rate).items():
            arms_by_figure[factors] = grouped(arms_with_factors, contender_of)
    return arms_by_figure


def _message_rate(arms: ArmsByLine) -> Iterator[Figure]:
    """Yield a figure, if anything was measured: orders below, answers above, with a line for each transport.

    Lines of rates that were held overlap.
    """
    lines: list[PaperLine] = []
    labels: list[EndLabel] = []
    for stream in ("orders", "answers"):
        lines_of_stream = lines_of(arms, f"{stream}_per_s", prefix=f"{stream}, ")
        if lines_of_stream:
            lines += lines_of_stream
            labels.append(EndLabel(max(line.end for line in lines_of_stream), stream, MUTED))
    if not lines:
        return
    chart = _lines_against_rate(lines, "per second", "per_s", labels)
    highest_rate = max(rate_of(line.arms[-1]) for line in lines)
    offered = [0.0, highest_rate]
    chart.axes.plot(offered, offered, color=MUTED, linestyle="--", linewidth=1.2, zorder=1)
    yield Figure("Figure 8 (a): message rate", chart, RATES_CAPTION)


def _figure_if_any(
    title: str, lines: list[PaperLine], *, axis_unit: str, file_unit: str, caption: str
) -> Iterator[Figure]:
    """Yield a figure with each line named beside its end; nothing if there is no line."""
    if lines:
        labels = [EndLabel(line.end, line.name, line.colour) for line in lines]
        yield Figure(title, _lines_against_rate(lines, axis_unit, file_unit, labels), caption)


@dataclass(frozen=True)
class PaperLine:
    """A metric of arms that all measured it, in the order of their rates."""

    name: str
    colour: str
    metric: str
    arms: list[Record]

    @property
    def end(self) -> float:
        """Return the median at the highest rate."""
        return float(self.arms[-1]["metrics"][self.metric]["median"])


def lines_of(arms_by_line: ArmsByLine, metric: str, prefix: str = "") -> list[PaperLine]:
    """Return a line for each name whose arms measured the metric. A line has the same colour in every figure."""
    colours = contender_colours(arms_by_line)
    lines: list[PaperLine] = []
    for name, arms in arms_by_line.items():
        measured = [arm for arm in arms if metric in arm["metrics"]]
        if measured:
            lines.append(PaperLine(prefix + name, colours[name], metric, sorted(measured, key=rate_of)))
    return lines


def _lines_against_rate(lines: list[PaperLine], axis_unit: str, file_unit: str, labels: list[EndLabel]) -> Chart:
    axes = empty_axes(axis_unit, "orders/s")
    points: list[RatePoint] = []
    for line in lines:
        draw_arms(axes, line.name, line.arms, line.metric, line.colour)
        points += [RatePoint(line.name, line.metric, arm) for arm in line.arms]
        points += _rings(axes, line)
    linear_x(axes, sorted({rate_of(point.arm) for point in points}))
    linear_y(axes)
    label_ends(axes, labels)
    numbers = numbers_of_points(points, file_unit)
    return Chart(axes, numbers, hover=numbers)


def _rings(axes: Axes, line: PaperLine) -> list[RatePoint]:
    """Draw the means of samples beside the line as rings; returns their points, for the CSV."""
    points: list[RatePoint] = []
    for metric in SAMPLED.get(line.metric, ()):
        arms = [arm for arm in line.arms if metric in arm["metrics"]]
        x = [rate_of(arm) for arm in arms]
        y = [float(arm["metrics"][metric]["median"]) for arm in arms]
        axes.plot(x, y, linestyle="none", marker="o", markersize=8, fillstyle="none", color=line.colour, clip_on=False)
        points += [RatePoint(f"{line.name}, {metric}", metric, arm) for arm in arms]
    return points


@dataclass(frozen=True)
class PublishedRow:
    """A row: title, the paper's value in words, and ours for each column; None if nothing was measured."""

    title: str
    paper: str
    ours: list[Record | None]


def published(record: Record) -> list[PublishedRow]:
    """Return the rows; empty if the comparison has no figures in the paper's layout."""
    arms_by_figure = arms_by_title_suffix(record)
    if not arms_by_figure:
        return []
    rows: list[PublishedRow] = []
    for title_suffix, arms in arms_by_figure.items():
        rows.append(_completion_row("mean completion", title_suffix, arms, "handed_over_mean_us"))
        of_samples = _completion_row(
            "mean completion of the sampled orders", title_suffix, arms, "sampled_handed_over_mean_us"
        )
        if any(of_samples.ours):
            rows.append(of_samples)
    first_arms = next(iter(arms_by_figure.values()))
    rows.append(_cpu_row(first_arms))
    return rows


def transports(record: Record) -> list[str]:
    """Return the titles of the columns with our values: the names of the first figure's lines."""
    for arms in arms_by_title_suffix(record).values():
        return list(arms)
    return []


def _completion_row(mean: str, title_suffix: str, arms_by_line: ArmsByLine, metric: str) -> PublishedRow:
    """Return the row of a mean completion time at IPOIB_RATE, for which the paper printed values."""
    has_nagle = False
    ours: list[Record | None] = []
    for arms in arms_by_line.values():
        if any(arm["settings"]["nagle"] for arm in arms):
            has_nagle = True
        ours.append(_at_ipoib_rate(arms, metric))
    paper_us = IPOIB_MEAN_US["on" if has_nagle else "off"]
    title = f"{mean} in µs, at {IPOIB_RATE:,.0f} orders/s{title_suffix}; the paper: IPoIB"
    return PublishedRow(title, f"{paper_us:,}", ours)


def _at_ipoib_rate(arms: list[Record], metric: str) -> Record | None:
    for arm in arms:
        if rate_of(arm) == IPOIB_RATE:
            mean: Record | None = arm["metrics"].get(metric)
            return mean
    return None


def _cpu_row(arms_by_line: ArmsByLine) -> PublishedRow:
    """Return the row of the most CPU that any component used."""
    title = "CPU of the busiest component at any rate: ours in % of a core, the paper's on IPoIB without a unit"
    ours = [_most_cpu(arms) for arms in arms_by_line.values()]
    return PublishedRow(title, f"up to {IPOIB_CPU_PERCENT}", ours)


def _most_cpu(arms: list[Record]) -> Record | None:
    """Return the estimate of the busiest component over all arms; None if none was measured."""
    estimates: list[Record] = []
    for arm in arms:
        estimates += [estimate for metric, estimate in arm["metrics"].items() if metric.endswith("_cpu_percent")]
    return max(estimates, key=lambda estimate: float(estimate["median"]), default=None)
