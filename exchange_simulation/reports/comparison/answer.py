"""The findings of a comparison: a sentence for each metric and pair of contenders, and its ratios as a picture.

The picture, a ratio plot, has a row for each verdict: the estimate, its interval, and a line at 1, on one log scale.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log, log10

from exchange.estimates import IntervalEstimate
from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.launching.metrics import COMPARISON_METRICS
from exchange_simulation.reports.formats.estimates import with_middle_half
from exchange_simulation.reports.formats.ratios import interval_in_words, ratio_in_words

NAGLE = "nagle"
P50 = "due_p50_us"
SAYS = {metric.name: metric.says for metric in COMPARISON_METRICS if metric.says}
"""The wording of a metric whose record does not say it."""
TICKS = tuple(digit * 10.0**exponent for exponent in range(-4, 4) for digit in (1, 2, 5))
TOO_FEW = "too few repeats to tell"
WITHOUT_DIFFERENCE = {"no difference found": "cannot tell", TOO_FEW: TOO_FEW, "not compared": "not compared"}
MOST_TICKS = 10
"""With more ticks only powers of ten are left."""
MOST_ROWS = 30
NARROWEST = 0.5, 2.0
"""The scale shows at least these ratios, so that a small difference looks small."""


def answers(record: Record) -> list[str]:
    """Return a sentence for each metric and pair of contenders, the first metric's first.

    If nothing was compared, return a sentence on each contender.
    """
    if record["verdicts"]:
        return _comparisons(record)
    contenders = grouped(record["arms"], lambda arm: str(arm["contender"]))
    return [_contender_alone(name, arms) for name, arms in contenders.items()]


def _contender_alone(contender: str, arms: list[Record]) -> str:
    """Return a sentence on one contender: its completion times, its rates flat out, and whether its rates were kept.

    For example: amqp: completion p50 from due 368 us at 2,000 orders/s, to 667 us at 8,000 orders/s; every rate was
    kept
    """
    clauses = []
    timed = sorted((arm for arm in arms if P50 in arm["metrics"]), key=lambda arm: float(arm["metrics"][P50]["median"]))
    if timed:
        fastest, slowest = (
            f"{with_middle_half(arm['metrics'][P50])} us {arm['block']}" for arm in (timed[0], timed[-1])
        )
        clauses.append(f"completion p50 from due {', to '.join(unique([fastest, slowest]))}")
    for arm in arms:
        if arm["settings"]["orders_per_s"] is None and "orders_per_s" in arm["metrics"]:
            clauses.append(f"{with_middle_half(arm['metrics']['orders_per_s'])} orders/s {arm['block']}")
    lost = [arm["block"] for arm in arms if arm["held"] is False]
    if lost:
        clauses.append(f"the rate was not kept {', '.join(lost)}")
    unmeasured = [arm["block"] for arm in arms if arm["held"] is None]
    if unmeasured:
        clauses.append(f"nothing was measured {', '.join(unmeasured)}")
    if timed and not lost and not unmeasured:
        clauses.append("every rate was kept")
    return f"{contender}: {'; '.join(clauses) or 'nothing was measured'}"


def _comparisons(record: Record) -> list[str]:
    """Return a sentence for each metric and pair of contenders; metrics with the same sentence share one.

    For example: zeromq is 1.55 to 3.2 times faster than amqp in 5 of 5 cases (completion p50 from due time)
    """
    titles: dict[str, list[str]] = {}
    for title, verdicts in _by_metric(record).items():
        metric, _, _ = title.partition(": ")
        titles.setdefault(_comparison(record, verdicts), []).append(metric)
    return [f"{sentence} ({', '.join(metrics)})" for sentence, metrics in titles.items()]


def _by_metric(record: Record) -> dict[str, list[Record]]:
    """Return the verdicts of each metric and pair of contenders, by a title.

    For example, a title is: completion p50 from due time: zeromq / amqp
    """

    def title_of(verdict: Record) -> str:
        metric = record["metrics"][verdict["metric"]]["title"]
        return f"{metric}: {' / '.join(contenders(record, verdict))}"

    return grouped(record["verdicts"], title_of)


def headline(record: Record) -> str:
    """Return the answer in one sentence.

    With several pairs of contenders it says how many comparisons differ, and which differs most.
    """
    sentences = answers(record)
    if not sentences:
        return "Nothing was measured"
    pairs = {contenders(record, verdict) for verdict in record["verdicts"]}
    if len(pairs) <= 1:
        return sentences[0]
    differ = [verdict for verdict in record["verdicts"] if verdict["outcome"] == "differ"]
    if not differ:
        return ", ".join(_without_difference(record["verdicts"], with_total=True)).capitalize()
    most = max(differ, key=lambda verdict: abs(log(verdict["ratio"])))
    how_many = f"{len(differ)} of {counted(len(record['verdicts']), 'comparisons')} differ"
    title = record["metrics"][most["metric"]]["title"]
    return f"{how_many}, most of all {most['block'] or 'in all'}: {most['sentence']} ({title})"


def other_answers(record: Record) -> list[str]:
    """Return the answers that the headline does not give already."""
    first = headline(record)
    return [sentence for sentence in answers(record) if sentence != first]


def contenders(record: Record, verdict: Record) -> tuple[str, str]:
    """Return the names of the two contenders that a verdict compares."""
    names = {arm["label"]: str(arm["contender"]) for arm in record["arms"]}
    return names[verdict["first"]], names[verdict["second"]]


def _comparison(record: Record, verdicts: list[Record]) -> str:
    """Return a sentence on the verdicts of one metric and pair of contenders.

    For example: zeromq is 1.55 to 3.2 times faster than amqp in 5 of 5 cases
    """
    smaller = [verdict for verdict in verdicts if verdict["outcome"] == "differ" and verdict["ratio"] < 1]
    larger = [verdict for verdict in verdicts if verdict["outcome"] == "differ" and verdict["ratio"] > 1]
    clauses = []
    for same_side in sorted([smaller, larger], key=len, reverse=True):
        if same_side:
            clauses.append(_difference(record, same_side, len(verdicts)))
    if clauses:
        return "; ".join([*clauses, *_without_difference(verdicts, with_total=False)])
    first, second = contenders(record, verdicts[0])
    return f"{first} and {second}: {', '.join(_without_difference(verdicts, with_total=True))}"


def _difference(record: Record, differ: list[Record], cases: int) -> str:
    """Return a clause on verdicts that all favour the same contender: which one, by how much, in how many of the cases.

    For example: zeromq is 1.55 to 3.2 times faster than amqp in 5 of 5 cases
    """
    first, second = contenders(record, differ[0])
    is_first_larger = differ[0]["ratio"] > 1
    factors = sorted(max(verdict["ratio"], 1 / verdict["ratio"]) for verdict in differ)
    times = " to ".join(unique([_factor(factors[0]), _factor(factors[-1])]))
    how_many = f" in {len(differ)} of {cases} cases" if cases > 1 else ""
    if record["study"] == NAGLE:
        effect = f"helps, {times} times faster" if is_first_larger else f"hurts, {times} times slower"
        return f"{second} {effect},{how_many}" if how_many else f"{second} {effect}"
    larger, smaller = (first, second) if is_first_larger else (second, first)
    metric = differ[0]["metric"]
    says = str(record["metrics"][metric].get("says") or SAYS[metric])
    return says.format(times=times, larger=larger, smaller=smaller) + how_many


def _factor(factor: float) -> str:
    return f"{factor:.2f}" if factor < 2 else f"{factor:.1f}"


def _without_difference(verdicts: list[Record], with_total: bool) -> list[str]:
    """Return a clause for each reason for which verdicts found no difference, with their number.

    For example: no difference found in 3 of 5 cases. The total is left out unless `with_total`.
    """
    numbers = Counter(_outcome(verdict) for verdict in verdicts)
    of_total = f" of {counted(len(verdicts), 'cases')}" if with_total else ""
    clauses = []
    for words, outcome in WITHOUT_DIFFERENCE.items():
        number = numbers[outcome]
        if number:
            clauses.append(words if len(verdicts) == 1 else f"{words} in {number}{of_total}")
    return clauses


def _outcome(verdict: Record) -> str:
    """Return the verdict's outcome; TOO_FEW if it could not tell because there is no interval."""
    if verdict["outcome"] == "cannot tell" and verdict.get("low") is None:
        return TOO_FEW
    return str(verdict["outcome"])


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
class RatioPlot:
    ticks: list[tuple[str, float]]
    """Each ratio and its place."""
    groups: dict[str, list[Mark]]
    """By metric and pair of contenders."""

    @property
    def first_groups(self) -> dict[str, list[Mark]]:
        """Return the groups that a page shows at once: all, or those of the first metric if there are too many rows."""
        if sum(map(len, self.groups.values())) <= MOST_ROWS:
            return self.groups
        first_metric, _, _ = next(iter(self.groups)).partition(": ")
        return {title: marks for title, marks in self.groups.items() if title.partition(": ")[0] == first_metric}

    @property
    def other_groups(self) -> dict[str, list[Mark]]:
        return {name: marks for name, marks in self.groups.items() if name not in self.first_groups}


def ratio_plot(record: Record) -> RatioPlot | None:
    """Return the ratio plot; None if nothing was compared."""
    drawn = [verdict for verdict in record["verdicts"] if verdict.get("ratio")]
    if not drawn:
        return None
    lows = [verdict["low"] or verdict["ratio"] for verdict in drawn]
    highs = [verdict["high"] or verdict["ratio"] for verdict in drawn]
    lowest, highest = NARROWEST
    scale = _RatioScale(min(lowest, *lows, *highs) / 1.05, max(highest, *lows, *highs) * 1.05)
    ticks = [tick for tick in TICKS if scale.low <= tick <= scale.high]
    if len(ticks) > MOST_TICKS:
        ticks = [tick for tick in ticks if log10(tick).is_integer()]
    groups = {}
    for title, verdicts in _by_metric(record).items():
        groups[title] = [_mark(record, verdict, scale) for verdict in verdicts]
    return RatioPlot([(f"{tick:g}", scale.place(tick)) for tick in ticks], groups)


@dataclass(frozen=True)
class _RatioScale:
    """The logarithmic scale of a ratio plot, from its lowest to its highest ratio."""

    low: float
    high: float

    def place(self, ratio: float) -> float:
        """Return a ratio's place, in percent of the scale."""
        return round(100 * log(ratio / self.low) / log(self.high / self.low), 2)


def _mark(record: Record, verdict: Record, scale: _RatioScale) -> Mark:
    """Return a verdict's row of the plot; without a place if it has no ratio."""
    outcome = verdict["outcome"]
    ratio = verdict.get("ratio")
    if not ratio:
        return Mark(verdict["block"], words=outcome, agree="", outcome=outcome, sentence=verdict["sentence"])
    low = verdict.get("low")
    high = verdict.get("high")
    return Mark(
        label=verdict["block"],
        words=f"{ratio_in_words(ratio)} {interval_in_words(IntervalEstimate(ratio, low, high))}".rstrip(),
        agree=_agree(record, verdict),
        outcome=outcome,
        sentence=verdict["sentence"],
        at=scale.place(ratio),
        low=None if low is None else scale.place(low),
        high=None if high is None else scale.place(high),
    )


def _agree(record: Record, verdict: Record) -> str:
    """Return in how many repeats the ratio was on the verdict's side of 1; equal values are on neither side.

    For example: 9 of 10
    """
    arms = {arm["label"]: arm["metrics"] for arm in record["arms"]}
    first, second = (arms[verdict[side]][verdict["metric"]]["by_repeat"] for side in ("first", "second"))
    smaller, larger = (second, first) if verdict["ratio"] >= 1 else (first, second)
    agreed = [repeat for repeat in verdict["repeats"] if smaller[str(repeat)] < larger[str(repeat)]]
    return f"{len(agreed)} of {len(verdict['repeats'])}"


def strip(mark: Mark, ticks: list[tuple[str, float]], width: int) -> str:
    """Return a row of the plot in characters: --*-- differs, --o-- may be equal, and | stands at 1."""
    row = [" "] * width
    if mark.low is not None and mark.high is not None:
        first = _column(mark.low, width)
        last = _column(mark.high, width)
        row[first : last + 1] = "-" * (last + 1 - first)
    one = _column(dict(ticks)["1"], width)
    row[one] = "|" if row[one] == " " else "+"
    if mark.at is not None:
        row[_column(mark.at, width)] = "*" if mark.outcome == "differ" else "o"
    return "".join(row)


def scale_of_strips(ticks: list[tuple[str, float]], width: int) -> str:
    """Return the ticks' numbers above their places; one that would touch its neighbour is left out."""
    row = " " * width
    for text, at in sorted(ticks, key=lambda tick: tick[0] != "1"):
        start = min(max(_column(at, width) - len(text) // 2, 0), width - len(text))
        if not row[max(start - 1, 0) : start + len(text) + 1].strip():
            row = row[:start] + text + row[start + len(text) :]
    return row


def _column(place: float, width: int) -> int:
    return min(int(place / 100 * width), width - 1)
