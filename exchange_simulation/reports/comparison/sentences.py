"""A comparison's title, circumstances, settings and names of arms in words, and the figures of its arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.unique import unique
from exchange_simulation.reports.formats.estimates import median_text
from exchange_simulation.reports.formats.few_orders import has_enough_orders, max_of
from exchange_simulation.reports.formats.numbers import rate_text
from exchange_simulation.reports.formats.times import date_and_time
from transports.registry import caution_of, remark_of, scheme_of


def title(record: Record) -> str:
    """Return the title of a comparison: its contenders, transports and rates.

    For example: zeromq against tcp, at 1,000 to 16,000 orders/s
    For example: Nagle off against Nagle on over tcp, at 1,000 orders/s
    """
    between = " against " if len(record["contenders"]) == 2 else ", "
    words = between.join(record["contenders"])
    if not all(arm["settings"]["transport"] in arm["contender"] for arm in record["arms"]):
        transports = unique(arm["settings"]["transport"] for arm in record["arms"])
        words += f" over {', '.join(transports)}"
    rates = {arm["settings"]["orders_per_s"] for arm in record["arms"]} - {None}
    if rates:
        ends = unique([rate_text(min(rates)), rate_text(max(rates))])
        words += f", at {' to '.join(ends)} orders/s"
    return words


def circumstances(record: Record) -> list[str]:
    """Return sentences on the time, number and order of the runs, and on the meaning of an interval."""
    sentences = []
    started = record["conditions"].get("started_at")
    if started:
        sentences.append(f"Measured from {date_and_time(started)}.")
    arms = len(record["arms"])
    sentences.append(f"{record['repeats']} interleaved repeats of {arms} arms, shuffled by seed {record['seed']}.")
    if record.get("seed_by_repeat"):
        sentences.append("Each repeat has orders of its own, the same for all its arms.")
    sentences.append("Figures are medians over repeats, in brackets the middle half of the repeats.")
    sentences.append("A ratio is taken within each repeat, between runs close in time.")
    sentences.append(how_tested(record))
    sentences.append(sureness(record))
    sentences.extend(cautions(record))
    return sentences


def cautions(record: Record) -> list[str]:
    """Return the sentences that belong beside the figures of single transports, each with the transport's scheme."""
    schemes = unique(scheme_of(arm["settings"]["transport"]) for arm in record["arms"])
    cautions_by_scheme = {scheme: caution_of(scheme) for scheme in schemes}
    return [f"{scheme}: {caution}" for scheme, caution in cautions_by_scheme.items() if caution]


def how_tested(record: Record) -> str:
    """Return a sentence on the test behind the verdicts, and how it is corrected for their number."""
    tests = record["statistics"]
    return f"Test: {tests['test']}; {tests['correction']}."


def sureness(record: Record) -> str:
    """Return a sentence on how sure the intervals and the verdicts are."""
    intervals = sum(verdict.get("low") is not None for verdict in record["verdicts"])
    confidence = record["statistics"]["confidence"]
    if intervals == 0:
        is_compared = any(verdict["outcome"] in ("cannot tell", "too noisy") for verdict in record["verdicts"])
        return f"There is no interval: {'too few repeats' if is_compared else 'nothing was compared'}."
    if intervals == 1:
        return f"The interval holds the true ratio in {confidence:.0%} of trials."
    number = "Both" if intervals == 2 else f"All {intervals}"
    return f"{number} intervals together hold the true ratios in {confidence:.0%} of trials."


def common_settings(record: Record) -> Record:
    """Return the settings that all arms share."""
    return _shared_settings(record["arms"])


def settings_by_contender(record: Record) -> dict[str, Record]:
    """Return the settings of each contender that are the same at every rate and not shared by the others."""
    common = common_settings(record)
    arms = grouped(record["arms"], lambda arm: str(arm["contender"]))
    settings = {}
    for contender in record["contenders"]:
        shared = _shared_settings(arms[contender])
        settings[contender] = {name: value for name, value in shared.items() if name not in common}
    return settings


def _shared_settings(arms: list[Record]) -> Record:
    """Return the settings that have the same value in all arms."""
    first = arms[0]["settings"]
    return {name: value for name, value in first.items() if all(arm["settings"][name] == value for arm in arms)}


def factors_beside_rate(arm: Record) -> str:
    """Return the factors that the arm's block holds fixed beside the rate, with a comma in front; often none.

    For example: ", packing 10"
    """
    _, _, factors = arm["block"].partition(", ")
    return f", {factors}" if factors else ""


def rate_and_name(record: Record, arm: Record) -> tuple[str, str]:
    """Return an arm's rate, and its contender with the factors beside the rate, and with its guarantee.

    For example: ("8,000", "amqp, packing 10, arrivals poisson"), or ("max", "redis?kind=stream (durable)")
    """
    name = arm["contender"] + factors_beside_rate(arm) + in_brackets(arm, record["arms"])
    return rate_text(arm["settings"]["orders_per_s"]), name


def in_brackets(arm: Record, arms: Sequence[Record]) -> str:
    """Return an arm's remark, and the first word of its guarantee if that of another arm differs, in brackets.

    For example: " (no network)", " (durable)"; empty if there is nothing to say. The first caveat of the record has the
    whole guarantees.
    """
    notes = [remark_of(arm["settings"]["transport"])]
    guarantees = {one.get("guarantee") for one in arms}
    if arm.get("guarantee") and len(guarantees) > 1:
        notes.append(arm["guarantee"].partition(",")[0])
    words = "; ".join(note for note in notes if note)
    return f" ({words})" if words else ""


def cpu_metric(component: str) -> str:
    """Return the name of a component's CPU metric."""
    return f"{component}_cpu_s_per_million"


def cpu_beyond(record: Record, arm: Record) -> Record | None:
    """Return the CPU that an arm takes beyond the first arm of its block, repeat by repeat; None for the first one.

    The exchange's own work cancels in the difference; it would not in a ratio.
    """
    first = next(other for other in record["arms"] if other["block"] == arm["block"])
    if arm is first:
        return None
    cpu = _cpu_by_repeat(arm)
    cpu_of_first = _cpu_by_repeat(first)
    beyond = {repeat: cpu[repeat] - cpu_of_first[repeat] for repeat in cpu if repeat in cpu_of_first}
    if not beyond:
        return None
    return {"median": median(beyond.values()), "by_repeat": beyond}


def _cpu_by_repeat(arm: Record) -> dict[str, float]:
    """Return an arm's CPU seconds per million orders in each repeat; empty if they were not measured."""
    estimate: dict[str, Any] = arm["metrics"].get("cpu_s_per_million", {})
    by_repeat: dict[str, float] = estimate.get("by_repeat", {})
    return by_repeat


def completion(arm: Record, clock: str, figure: str, in_words: Callable[[Record | None], str]) -> str:
    """Return an arm's completion time; the maximum if the figure is a percentile of too few orders.

    `in_words` writes the estimate. For example: 162 (151..180), or 1,240 (max of 499)
    """
    orders = arm.get("orders_measured")
    if not has_enough_orders(figure, orders):
        maximum = median_text(arm["metrics"].get(f"{clock}_max_us"))
        return f"{maximum} ({max_of(orders or 0)})"
    return in_words(arm["metrics"].get(f"{clock}_{figure}_us"))
