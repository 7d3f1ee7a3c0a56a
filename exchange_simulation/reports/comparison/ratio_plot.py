"""The ratio plot of a comparison: a row for each verdict, with the estimate, its interval and a line at 1.

All rows share one logarithmic scale. A page draws the plot from places in percent; the terminal has a strip of
characters for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log10

from exchange.estimates import IntervalEstimate
from exchange.json_records import Record
from exchange.unique import unique
from exchange_simulation.reports.comparison.answer import metric_of_title, verdicts_by_metric
from exchange_simulation.reports.formats.ratios import interval_in_words, ratio_in_words

TICKS = tuple(digit * 10.0**exponent for exponent in range(-4, 4) for digit in (1, 2, 5))
MOST_TICKS = 10
"""If a scale has more ticks, only the powers of ten are shown."""
MOST_ROWS = 30
"""If a plot has more rows, a page shows those of the first metric, and the others on demand."""
LOWEST_RATIO = 0.5
"""The scale goes at least this low, so that a small difference looks small."""
HIGHEST_RATIO = 2.0
"""The scale goes at least this high."""
MARGIN = 1.05
"""The scale extends beyond the outermost ratios by this factor."""


@dataclass(frozen=True)
class Mark:
    """A row of the ratio plot. Places are in percent of the scale, from its left; None if there is no interval."""

    label: str
    words: str
    agree: str
    """The number of repeats in which the ratio was on the estimate's side of 1."""
    outcome: str
    sentence: str
    at: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Tick:
    text: str
    place: float
    """In percent of the scale."""


@dataclass(frozen=True)
class RatioPlot:
    ticks: list[Tick]
    groups: dict[str, list[Mark]]
    """By metric and pair of contenders."""

    @property
    def first_groups(self) -> dict[str, list[Mark]]:
        """Return the groups that a page shows at once: all, or those of the first metric if there are too many rows."""
        if sum(len(marks) for marks in self.groups.values()) <= MOST_ROWS:
            return self.groups
        titles = list(self.groups)
        first_metric = metric_of_title(titles[0])
        return {title: self.groups[title] for title in titles if metric_of_title(title) == first_metric}

    @property
    def other_groups(self) -> dict[str, list[Mark]]:
        first_groups = self.first_groups
        return {title: marks for title, marks in self.groups.items() if title not in first_groups}


def ratio_plot(record: Record) -> RatioPlot | None:
    """Return the ratio plot; None if nothing was compared."""
    drawn = [verdict for verdict in record["verdicts"] if verdict.get("ratio")]
    if not drawn:
        return None
    scale = _scale_of(drawn)
    ratios = [tick for tick in TICKS if scale.low <= tick <= scale.high]
    if len(ratios) > MOST_TICKS:
        ratios = [ratio for ratio in ratios if log10(ratio).is_integer()]
    groups = {}
    for title, verdicts in verdicts_by_metric(record).items():
        groups[title] = [_mark(record, verdict, scale) for verdict in verdicts]
    return RatioPlot([Tick(f"{ratio:g}", scale.place(ratio)) for ratio in ratios], groups)


@dataclass(frozen=True)
class _RatioScale:
    """The logarithmic scale of a ratio plot, from its lowest to its highest ratio."""

    low: float
    high: float

    def place(self, ratio: float) -> float:
        """Return a ratio's place, in percent of the scale."""
        return round(100 * log(ratio / self.low) / log(self.high / self.low), 2)


def _scale_of(verdicts: list[Record]) -> _RatioScale:
    """Return a scale on which every ratio and every interval has a place."""
    lowest = LOWEST_RATIO
    highest = HIGHEST_RATIO
    for verdict in verdicts:
        low = verdict["low"] or verdict["ratio"]
        high = verdict["high"] or verdict["ratio"]
        lowest = min(lowest, low, high)
        highest = max(highest, low, high)
    return _RatioScale(lowest / MARGIN, highest * MARGIN)


def _mark(record: Record, verdict: Record, scale: _RatioScale) -> Mark:
    """Return a verdict's row of the plot; without a place if it has no ratio."""
    outcome = verdict["outcome"]
    ratio = verdict.get("ratio")
    if not ratio:
        return Mark(verdict["block"], words=outcome, agree="", outcome=outcome, sentence=verdict["sentence"])
    low = verdict.get("low")
    high = verdict.get("high")
    if low is None or high is None:
        words = _range_of_repeats(record, verdict)
    else:
        words = f"{ratio_in_words(ratio)} {interval_in_words(IntervalEstimate(ratio, low, high))}"
    return Mark(
        label=verdict["block"],
        words=words,
        agree=_agreeing_repeats(record, verdict),
        outcome=outcome,
        sentence=verdict["sentence"],
        at=scale.place(ratio),
        low=None if low is None else scale.place(low),
        high=None if high is None else scale.place(high),
    )


def _range_of_repeats(record: Record, verdict: Record) -> str:
    """Return the ratios of all repeats, lowest to highest, for a verdict that has too few repeats for an interval.

    For example: 0.95 to 1.10
    """
    first = _by_repeat(record, verdict, "first")
    second = _by_repeat(record, verdict, "second")
    ratios = [first[str(repeat)] / second[str(repeat)] for repeat in verdict["repeats"]]
    return " to ".join(unique([ratio_in_words(min(ratios)), ratio_in_words(max(ratios))]))


def _by_repeat(record: Record, verdict: Record, side: str) -> dict[str, float]:
    """Return the values of the verdict's first or second arm by repeat."""
    metrics_by_arm = {arm["label"]: arm["metrics"] for arm in record["arms"]}
    values: dict[str, float] = metrics_by_arm[verdict[side]][verdict["metric"]]["by_repeat"]
    return values


def _agreeing_repeats(record: Record, verdict: Record) -> str:
    """Return in how many repeats the ratio was on the verdict's side of 1; equal values are on neither side.

    For example: 9 of 10
    """
    first = _by_repeat(record, verdict, "first")
    second = _by_repeat(record, verdict, "second")
    smaller, larger = (second, first) if verdict["ratio"] >= 1 else (first, second)
    agreed = [repeat for repeat in verdict["repeats"] if smaller[str(repeat)] < larger[str(repeat)]]
    return f"{len(agreed)} of {len(verdict['repeats'])}"


def strip(mark: Mark, ticks: list[Tick], width: int) -> str:
    """Return a row of the plot in characters: --*-- differs, --o-- may be equal, and | stands at 1."""
    row = [" "] * width
    if mark.low is not None and mark.high is not None:
        first = _column(mark.low, width)
        last = _column(mark.high, width)
        row[first : last + 1] = "-" * (last + 1 - first)
    for tick in ticks:
        if tick.text == "1":
            one = _column(tick.place, width)
            row[one] = "|" if row[one] == " " else "+"
    if mark.at is not None:
        row[_column(mark.at, width)] = "*" if mark.outcome == "differ" else "o"
    return "".join(row)


def scale_of_strips(ticks: list[Tick], width: int) -> str:
    """Return the ticks' numbers above their places. A number that would touch its neighbour is left out, never 1."""
    row = " " * width
    one_first = sorted(ticks, key=lambda tick: tick.text != "1")
    for tick in one_first:
        centred = _column(tick.place, width) - len(tick.text) // 2
        start = min(max(centred, 0), width - len(tick.text))
        end = start + len(tick.text)
        is_free = not row[max(start - 1, 0) : end + 1].strip()
        if is_free:
            row = row[:start] + tick.text + row[end:]
    return row


def _column(place: float, width: int) -> int:
    """Return the character at a place, given in percent of the width."""
    return min(int(place / 100 * width), width - 1)
