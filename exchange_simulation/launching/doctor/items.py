"""An item of the examination, and the one sentence that sums them all up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["good", "care", "no", "unknown"]
HEADS: Mapping[Verdict, str] = {"care": "with care for", "no": "not for"}
WORST_FIRST: tuple[Verdict, ...] = ("no", "care", "unknown", "good")


@dataclass(frozen=True, kw_only=True)
class Item:
    """A thing that was looked at. `why` is the short reason for a verdict other than good."""

    name: str
    verdict: Verdict
    found: str
    why: str = ""
    advice: str = ""
    """The user's remedy; empty if there is none."""
    figures: Mapping[str, Any] = field(default_factory=dict)


PURPOSES: Mapping[str, Sequence[str]] = {
    "medians and CPU costs": ("processors", "quiet"),
    "tails from p99 up": ("processors", "frequency", "quiet", "wake-ups", "clock"),
    "RabbitMQ": ("broker",),
    "emulated networks": ("network",),
    "packet captures": ("capture",),
    "Spark's tables": ("java",),
}
"""Purposes of measurements, with the names of the items that each depends on. ALWAYS has those of every purpose."""
ALWAYS = ("memory", "open files", "disk")


def answer(items: Iterable[Item]) -> str:
    """One sentence on what this machine can measure.

    For example: This machine is good for A and B; with care for C (why); not for D (why).
    """
    by_name = {item.name: item for item in items}
    good: list[str] = []
    others: dict[tuple[Verdict, str], list[str]] = {}
    for purpose, names in PURPOSES.items():
        needed = [by_name[name] for name in (*names, *ALWAYS) if name in by_name]
        worst = min(needed, key=lambda item: WORST_FIRST.index(item.verdict))
        if worst.verdict in HEADS:
            others.setdefault((worst.verdict, worst.why), []).append(purpose)
        else:
            good.append(purpose)
    parts = [f"good for {_listed(good)}"] if good else []
    for verdict, head in HEADS.items():
        reasons = [f"{_listed(purposes)} ({why})" for (kind, why), purposes in others.items() if kind == verdict]
        if reasons:
            parts.append(f"{head} {_listed(reasons)}")
    return f"This machine is {'; '.join(parts)}."


def _listed(words: Sequence[str]) -> str:
    """The words as a sentence lists them. For example: A, B and C"""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
