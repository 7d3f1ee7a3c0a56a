"""The findings of a comparison in words: a sentence for each metric and pair of contenders, and a headline."""

from __future__ import annotations

from collections import Counter
from math import log

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.launching.metrics import COMPARISON_METRICS
from exchange_simulation.reports.formats.estimates import with_middle_half

NAGLE = "nagle"
P50 = "due_p50_us"
WORDING = {metric.name: metric.says for metric in COMPARISON_METRICS if metric.says}
"""The wordings of the exchange's metrics, for records of older versions that do not have them."""
TOO_FEW = "too few repeats to tell"
WITHOUT_DIFFERENCE = {
    "no difference found": "cannot tell",
    TOO_FEW: TOO_FEW,
    "too noisy to say": "too noisy",
    "not compared": "not compared",
}
"""The words for verdicts that found no difference, and the outcome of each."""


def answers(record: Record) -> list[str]:
    """Return a sentence for each metric and pair of contenders, in the order of the metrics.

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
    measured_arms = [arm for arm in arms if P50 in arm["metrics"]]
    if measured_arms:
        fastest = _p50_in_words(min(measured_arms, key=_p50_us))
        slowest = _p50_in_words(max(measured_arms, key=_p50_us))
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
    if measured_arms and not lost and not unmeasured:
        clauses.append("every rate was kept")
    return f"{contender}: {'; '.join(clauses) or 'nothing was measured'}"


def _p50_us(arm: Record) -> float:
    return float(arm["metrics"][P50]["median"])


def _p50_in_words(arm: Record) -> str:
    """For example: 368 us at 2,000 orders/s"""
    return f"{with_middle_half(arm['metrics'][P50])} us {arm['block']}"


def _comparisons(record: Record) -> list[str]:
    """Return a sentence for each metric and pair of contenders; metrics with the same sentence share one.

    For example: zeromq is 1.55 to 3.2 times faster than amqp in 5 of 5 cases (completion p50 from due time)
    """
    metrics_by_sentence: dict[str, list[str]] = {}
    for title, verdicts in verdicts_by_metric(record).items():
        sentence = _comparison(record, verdicts)
        metrics_by_sentence.setdefault(sentence, []).append(metric_of_title(title))
    return [f"{sentence} ({', '.join(metrics)})" for sentence, metrics in metrics_by_sentence.items()]


def metric_of_title(title: str) -> str:
    """Return the metric in a title of `verdicts_by_metric`."""
    metric, _, _ = title.partition(": ")
    return metric


def verdicts_by_metric(record: Record) -> dict[str, list[Record]]:
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
    largest = max(differ, key=lambda verdict: abs(log(verdict["ratio"])))
    number = f"{len(differ)} of {counted(len(record['verdicts']), 'comparisons')} differ"
    metric = record["metrics"][largest["metric"]]["title"]
    return f"{number}, most of all {largest['block'] or 'in all'}: {largest['sentence']} ({metric})"


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
    for differ in sorted([smaller, larger], key=len, reverse=True):
        if differ:
            clauses.append(_difference(record, differ, len(verdicts)))
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
    in_cases = f" in {len(differ)} of {cases} cases" if cases > 1 else ""
    if record["study"] == NAGLE:
        effect = f"helps, {times} times faster" if is_first_larger else f"hurts, {times} times slower"
        return f"{second} {effect},{in_cases}" if in_cases else f"{second} {effect}"
    larger, smaller = (first, second) if is_first_larger else (second, first)
    metric = differ[0]["metric"]
    wording = str(record["metrics"][metric].get("says") or WORDING[metric])
    return wording.format(times=times, larger=larger, smaller=smaller) + in_cases


def _factor(factor: float) -> str:
    """For example: 1.55, 3.2"""
    return f"{factor:.2f}" if factor < 2 else f"{factor:.1f}"


def _without_difference(verdicts: list[Record], with_total: bool) -> list[str]:
    """Return a clause for each reason why verdicts found no difference, with their number.

    For example: no difference found in 3 of 5 cases; without the total: no difference found in 3.
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
    """Return the verdict's outcome; TOO_FEW if there were too few repeats for an interval."""
    if verdict["outcome"] == "cannot tell" and verdict.get("low") is None:
        return TOO_FEW
    return str(verdict["outcome"])
