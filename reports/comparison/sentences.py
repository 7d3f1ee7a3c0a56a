"""What was compared, in plain sentences."""

from __future__ import annotations

from typing import Any

from reports.run.sentences import in_words

Record = dict[str, Any]


def title(record: Record) -> str:
    """zeromq against tcp, at 1,000 to 16,000 orders/s; Nagle off against Nagle on over tcp, at 1,000 orders/s"""
    rates = sorted({rate for arm in record["arms"] if (rate := arm["settings"]["orders_per_s"]) is not None})
    offered = " to ".join(f"{rate:,.10g}" for rate in dict.fromkeys((rates[0], rates[-1]))) if rates else ""
    who = (" against " if len(record["contenders"]) == 2 else ", ").join(record["contenders"])
    transports = list(dict.fromkeys(arm["settings"]["transport"] for arm in record["arms"]))
    named = all(arm["settings"]["transport"] in arm["contender"] for arm in record["arms"])
    over = "" if named else f" over {', '.join(transports)}"
    return who + over + (f", at {offered} orders/s" if rates else "")


def circumstances(record: Record) -> list[str]:
    """When, how often, in which order, and what an interval is."""
    started, seed = record["conditions"].get("started_at"), record["seed"]
    rows, tests = record["statistics"]["rows"], record["statistics"]
    return [
        *([f"Measured from {in_words(started)}."] if started else []),
        f"{record['repeats']} interleaved repeats of {len(record['arms'])} arms, shuffled by seed {seed}; every run at "
        "a rate has the same orders.",
        f"Figures are medians over repeats, in brackets their {tests['confidence']:.0%} bootstrap intervals.",
        f"A verdict has p < {tests['alpha']:g} after Holm's correction for {rows} rows (Wilcoxon's signed-rank test, "
        "paired by repeat).",
    ]


def common_settings(record: Record) -> Record:
    """The settings that all arms share."""
    return _same([arm["settings"] for arm in record["arms"]], {})


def own_settings(record: Record) -> dict[str, Record]:
    """By contender, what it has to itself: the same at every rate, and not what the others have."""
    shared = common_settings(record)
    return {name: _same(_settings_of(record, name), shared) for name in record["contenders"]}


def _settings_of(record: Record, contender: str) -> list[Record]:
    return [arm["settings"] for arm in record["arms"] if arm["contender"] == contender]


def _same(settings: list[Record], shared: Record) -> Record:
    first, *others = settings
    return {n: v for n, v in first.items() if n not in shared and all(other[n] == v for other in others)}
