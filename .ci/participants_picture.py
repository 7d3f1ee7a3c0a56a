"""The picture of two transports at several numbers of gateways and subscribers, from a recorded comparison."""

from __future__ import annotations

import sys

from ratio_picture import Panel, Row, axis_around, ratio_picture

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.reports.formats.ratios import ratio_in_words

METRIC = "due_p50_us"
NAMES = {"zeromq": "ZeroMQ", "amqp": "RabbitMQ"}


def participants_picture(comparison: Record) -> str:
    """Return an SVG of p50 over the first transport, as a part of the second one's, by numbers of participants.

    A panel has the verdicts of one number of subscribers; a row those of one number of gateways. SystemExit if the
    comparison has not exactly two transports.
    """
    if len(comparison["contenders"]) != 2:
        sys.exit(f"the comparison has {', '.join(comparison['contenders'])}: the picture takes two transports")
    first, second = [NAMES.get(contender, contender) for contender in comparison["contenders"]]
    arms = {arm["label"]: arm for arm in comparison["arms"]}
    rows_by_subscribers: dict[int, list[Row]] = {}
    for verdict in comparison["verdicts"]:
        if verdict["metric"] == METRIC:
            arm = arms[verdict["first"]]
            row = row_of_verdict(verdict, arm, arms[verdict["second"]])
            rows_by_subscribers.setdefault(arm["settings"]["subscribers"], []).append(row)
    panels = []
    for subscribers, rows in rows_by_subscribers.items():
        subscribers_in_words = counted(subscribers, "subscribers") if subscribers else "no subscribers"
        title = f"Completion time over {first} (p50), where {second}'s is 1: {subscribers_in_words}"
        panels.append(Panel(title, rows))
    return ratio_picture(panels, axis_around(panels), [first, second])


def row_of_verdict(verdict: Record, first: Record, second: Record) -> Row:
    """Return the row of a verdict on two arms: the ratio with its interval, and the p50 of each arm."""
    label = counted(first["settings"]["gateways"], "gateways")
    cells = (median_us(first), median_us(second))
    ratio = verdict.get("ratio")
    if ratio is None:
        return Row(label, verdict["outcome"], None, None, None, cells)
    low = verdict.get("low")
    high = verdict.get("high")
    figures = ratio_in_words(ratio)
    if low is not None and high is not None:
        figures += f" ({ratio_in_words(low, decimals_of=ratio)} to {ratio_in_words(high, decimals_of=ratio)})"
    return Row(label, figures, ratio, low, high, cells)


def median_us(arm: Record) -> str:
    """Return an arm's median p50; a dash if it was not measured."""
    estimate = arm["metrics"].get(METRIC)
    return f"{estimate['median']:,.0f} us" if estimate else "-"
