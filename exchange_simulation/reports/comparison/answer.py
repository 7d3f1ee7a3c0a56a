"""The findings of a comparison: a sentence for each metric and pair of contenders, and its ratios as a picture.

The picture, a ratio plot, has a row for each verdict: the estimate, its interval, and a line at 1, on one log scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import log

from exchange.estimates import IntervalEstimate
from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.metrics import COMPARISON_METRICS
from exchange_simulation.reports.exports import grouped
from exchange_simulation.reports.formats import interval, times, with_middle_half

NAGLE = "nagle"
P50 = "due_p50_us"
SAYS = {metric.name: metric.says for metric in COMPARISON_METRICS if metric.says}
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
TOO_FEW = "too few repeats to tell"
WITHOUT_DIFFERENCE = {"no difference found": "cannot tell", TOO_FEW: TOO_FEW, "not compared": "not compared"}
MOST_ROWS = 30
NARROWEST = 0.5, 2.0
"""The scale shows at least these ratios, so that a small difference looks small."""


def answers(record: Record) -> list[str]:
    """A sentence for each metric and pair of contenders, the first metric's first; for one contender, what it did."""
    if record["verdicts"]:
        return _compared(record)
    return [_alone(name, arms) for name, arms in grouped(record["arms"], lambda arm: str(arm["contender"])).items()]


def _alone(contender: str, arms: list[Record]) -> str:
    """amqp: completion p50 from due 368 us at 2,000 orders/s, to 667 us at 8,000 orders/s; every rate was kept"""
    timed = sorted((arm for arm in arms if P50 in arm["metrics"]), key=lambda arm: float(arm["metrics"][P50]["median"]))
    ends = dict.fromkeys(
        f"{with_middle_half(arm['metrics'][P50])} us {arm['block']}" for arm in (timed[:1] + timed[-1:])
    )
    unpaced = [arm for arm in arms if arm["settings"]["orders_per_s"] is None and "orders_per_s" in arm["metrics"]]
    flat_out = [f"{with_middle_half(arm['metrics']['orders_per_s'])} orders/s {arm['block']}" for arm in unpaced]
    lost = [arm["block"] for arm in arms if arm["held"] is False]
    unmeasured = [arm["block"] for arm in arms if arm["held"] is None]
    clauses = [
        *([f"completion p50 from due {', to '.join(ends)}"] if ends else []),
        *flat_out,
        *([f"the rate was not kept {', '.join(lost)}"] if lost else []),
        *([f"nothing was measured {', '.join(unmeasured)}"] if unmeasured else []),
        *(["every rate was kept"] if ends and not (lost or unmeasured) else []),
    ]
    return f"{contender}: {'; '.join(clauses) or 'nothing was measured'}"


def _compared(record: Record) -> list[str]:
    """What is the same of several metrics is said once."""
    by_words = grouped(_by_metric(record).items(), lambda group: _answer(record, group[1]))
    titles = {words: [title.partition(": ")[0] for title, _ in own] for words, own in by_words.items()}
    return [f"{words} ({', '.join(own)})" for words, own in titles.items()]


def _by_metric(record: Record) -> dict[str, list[Record]]:
    """The verdicts of each metric and pair of contenders."""
    return grouped(
        record["verdicts"],
        lambda each: f"{record['metrics'][each['metric']]['title']}: {' / '.join(contenders(record, each))}",
    )


def headline(record: Record) -> str:
    """The answer in one sentence; with many pairs of contenders how many rows differ, and the largest difference."""
    found = answers(record)
    pairs = {contenders(record, verdict) for verdict in record["verdicts"]}
    if not found or len(pairs) <= 1:
        return found[0] if found else "Nothing was measured"
    differ = [verdict for verdict in record["verdicts"] if verdict["outcome"] == "differ"]
    if not differ:
        return ", ".join(_rest(record["verdicts"], others=False)).capitalize()
    most = max(differ, key=lambda verdict: abs(log(verdict["ratio"])))
    words = f"{len(differ)} of {counted(len(record['verdicts']), 'comparisons')} differ"
    title = record["metrics"][most["metric"]]["title"]
    return f"{words}, most of all {most['block'] or 'in all'}: {most['sentence']} ({title})"


def other_answers(record: Record) -> list[str]:
    """The answers that the headline does not give already."""
    first = headline(record)
    return [words for words in answers(record) if words != first]


def contenders(record: Record, verdict: Record) -> tuple[str, str]:
    """The names of the arms that a verdict compares."""
    names = {arm["label"]: str(arm["contender"]) for arm in record["arms"]}
    return names[verdict["first"]], names[verdict["second"]]


def _answer(record: Record, verdicts: list[Record]) -> str:
    """zeromq is 1.55 to 3.2 times faster than amqp in 5 of 5 cases; of one metric."""
    first, second = contenders(record, verdicts[0])
    differ = [verdict for verdict in verdicts if verdict["outcome"] == "differ"]
    sides = [[v for v in differ if v["ratio"] < 1], [v for v in differ if v["ratio"] > 1]]
    clauses = [_of_side(record, own, len(verdicts)) for own in sorted(sides, key=len, reverse=True) if own]
    rest = list(_rest(verdicts, bool(clauses)))
    return "; ".join([*clauses, *rest]) if clauses else f"{first} and {second}: {', '.join(rest)}"


def _of_side(record: Record, differ: list[Record], cases: int) -> str:
    """The contender that these rows favour, by how much, and in how many rows."""
    first, second = contenders(record, differ[0])
    factors = sorted(max(verdict["ratio"], 1 / verdict["ratio"]) for verdict in differ)
    ends = dict.fromkeys(f"{factor:.{2 if factor < 2 else 1}f}" for factor in (factors[0], factors[-1]))
    times, larger = " to ".join(ends), differ[0]["ratio"] > 1
    how_many = f" in {len(differ)} of {cases} cases" if cases > 1 else ""
    if record["study"] == NAGLE:
        words = f"{second} {'helps' if larger else 'hurts'}, {times} times {'faster' if larger else 'slower'}"
        return f"{words},{how_many}" if how_many else words
    names = {"larger": first, "smaller": second} if larger else {"larger": second, "smaller": first}
    return SAYS[differ[0]["metric"]].format(times=times, **names) + how_many


def _rest(verdicts: list[Record], others: bool) -> Iterator[str]:
    found = Counter(
        TOO_FEW if verdict["outcome"] == "cannot tell" and verdict.get("low") is None else verdict["outcome"]
        for verdict in verdicts
    )
    in_all = f" of {counted(len(verdicts), 'cases')}" if not others else ""
    for words, outcome in WITHOUT_DIFFERENCE.items():
        if number := found[outcome]:
            yield words if len(verdicts) == 1 else f"{words} in {number}{in_all}"


@dataclass(frozen=True)
class Mark:
    """A row of the ratio plot. Places are in percent of the scale, from its left; None without an interval."""

    label: str
    words: str
    agree: str
    """In how many repeats the ratio was on the estimate's side of 1."""
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
        """The groups that a page shows at once: all, or those of the first metric if there are too many rows."""
        if sum(map(len, self.groups.values())) <= MOST_ROWS:
            return self.groups
        first = next(iter(self.groups)).partition(": ")[0]
        return {name: marks for name, marks in self.groups.items() if name.partition(": ")[0] == first}

    @property
    def other_groups(self) -> dict[str, list[Mark]]:
        return {name: marks for name, marks in self.groups.items() if name not in self.first_groups}


def ratio_plot(record: Record) -> RatioPlot | None:
    """The picture; None if nothing was compared."""
    drawn = [verdict for verdict in record["verdicts"] if verdict.get("ratio")]
    if not drawn:
        return None
    ends = [*NARROWEST, *(verdict[end] or verdict["ratio"] for verdict in drawn for end in ("low", "high"))]
    scale = _Scale(min(ends) / 1.05, max(ends) * 1.05)
    return RatioPlot(
        [(f"{tick:g}", scale.place(tick)) for tick in TICKS if scale.low <= tick <= scale.high],
        {name: [_mark(record, verdict, scale) for verdict in own] for name, own in _by_metric(record).items()},
    )


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    def place(self, ratio: float) -> float:
        return round(100 * log(ratio / self.low) / log(self.high / self.low), 2)


def _mark(record: Record, verdict: Record, scale: _Scale) -> Mark:
    label, outcome, sentence = verdict["block"], verdict["outcome"], verdict["sentence"]
    ratio, ends = verdict.get("ratio"), (verdict.get("low"), verdict.get("high"))
    if not ratio:
        return Mark(label, outcome, "", outcome, sentence)
    words = f"{times(ratio)} {interval(IntervalEstimate(ratio, *ends))}".rstrip()
    low, high = (None if end is None else scale.place(end) for end in ends)
    return Mark(label, words, _agree(record, verdict), outcome, sentence, scale.place(ratio), low, high)


def _agree(record: Record, verdict: Record) -> str:
    """9 of 10, as in the verdict's sentence; a repeat with equal values is on neither side of 1."""
    arms = {arm["label"]: arm["metrics"] for arm in record["arms"]}
    low, high = (arms[verdict[side]][verdict["metric"]]["by_repeat"] for side in ("first", "second"))
    if verdict["ratio"] >= 1:
        low, high = high, low
    agreed = sum(low[str(repeat)] < high[str(repeat)] for repeat in verdict["repeats"])
    return f"{agreed} of {len(verdict['repeats'])}"


def strip(mark: Mark, ticks: list[tuple[str, float]], width: int) -> str:
    """A row of the plot in characters: --*-- differs, --o-- may be equal, and | stands at 1."""
    row = [" "] * width
    if mark.low is not None and mark.high is not None:
        first, last = _column(mark.low, width), _column(mark.high, width)
        row[first : last + 1] = "-" * (last + 1 - first)
    one = _column(dict(ticks)["1"], width)
    row[one] = "|" if row[one] == " " else "+"
    if mark.at is not None:
        row[_column(mark.at, width)] = "*" if mark.outcome == "differ" else "o"
    return "".join(row)


def scale_of_strips(ticks: list[tuple[str, float]], width: int) -> str:
    """The ticks' numbers above their places; one that would touch its neighbour is left out."""
    row = " " * width
    for text, at in sorted(ticks, key=lambda tick: tick[0] != "1"):
        start = min(max(_column(at, width) - len(text) // 2, 0), width - len(text))
        if not row[max(start - 1, 0) : start + len(text) + 1].strip():
            row = row[:start] + text + row[start + len(text) :]
    return row


def _column(place: float, width: int) -> int:
    return min(int(place / 100 * width), width - 1)
