"""Small comparisons, made up for tests of the answer and of the ratio plot."""

from __future__ import annotations

from typing import Any

P50 = "due_p50_us"
REPEATS = range(10)
ONES = {str(repeat): 1.0 for repeat in REPEATS}
TWOS_IN_8_REPEATS = {str(repeat): 2.0 if repeat < 8 else 0.5 for repeat in REPEATS}


def verdict(
    ratio: float | None, outcome: str = "differ", block: str = "at 1", first: str = "a", second: str = "b"
) -> dict[str, Any]:
    """Return a verdict whose interval is 10 % wide on either side."""
    interval = {"low": ratio / 1.1, "high": ratio * 1.1} if ratio else {}
    return {
        "metric": P50,
        "block": block,
        "first": f"{first} {block}",
        "second": f"{second} {block}",
        "outcome": outcome,
        "sentence": "sentence",
        "share_of_repeats_first_lower": 0.8,
        "repeats": list(REPEATS),
        "ratio": ratio,
        **interval,
    }


def without_interval(verdict: dict[str, Any]) -> dict[str, Any]:
    return {**verdict, "low": None, "high": None}


def comparison(*verdicts: dict[str, Any], study: str = "compare") -> dict[str, Any]:
    """Return a comparison with these verdicts and the arms that they name.

    Contender b has a higher value than the others in 8 of 10 repeats.
    """
    metrics = {verdict["metric"] for verdict in verdicts}
    arms = {}
    for verdict in verdicts:
        for label in (verdict["first"], verdict["second"]):
            contender = label.partition(" ")[0]
            by_repeat = TWOS_IN_8_REPEATS if contender == "b" else ONES
            estimates = {metric: {"by_repeat": by_repeat} for metric in metrics}
            arms[label] = {"label": label, "contender": contender, "metrics": estimates}
    return {
        "study": study,
        "verdicts": list(verdicts),
        "arms": list(arms.values()),
        "metrics": {P50: {"title": "completion p50 from due time"}},
    }
