"""An item of the examination, and the sentence that summarizes all items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["good", "care", "no", "unknown"]
HEADS: Mapping[Verdict, str] = {"care": "with care for", "no": "not for"}
"""The words before the purposes of a verdict. Purposes of all other verdicts count as good."""
WORST_FIRST: tuple[Verdict, ...] = ("no", "care", "unknown", "good")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing that was examined."""

    name: str
    verdict: Verdict
    found: str
    """The observation, in words."""
    why: str = ""
    """The short reason for a verdict other than good."""
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
"""Purposes of measurements, with the names of the items that each depends on, in addition to ALWAYS."""
ALWAYS = ("memory", "open files", "disk")
"""The items that every purpose depends on."""


def summary_of(items: Iterable[Item]) -> str:
    """Return a sentence about what this machine can measure. Purposes of which no item was examined are left out.

    For example: This machine is good for A and B; with care for C (why); not for D (why).
    """
    by_name = {item.name: item for item in items}
    good: list[str] = []
    others: dict[tuple[Verdict, str], list[str]] = {}  # purposes by verdict and reason
    for purpose, names in PURPOSES.items():
        needed = [by_name[name] for name in (*names, *ALWAYS) if name in by_name]
        if not needed:
            continue
        worst = min(needed, key=lambda item: WORST_FIRST.index(item.verdict))
        if worst.verdict in HEADS:
            others.setdefault((worst.verdict, worst.why), []).append(purpose)
        else:
            good.append(purpose)
    parts = [f"good for {_listed(good)}"] if good else []
    for verdict, head in HEADS.items():
        purposes_with_reason = []
        for (verdict_of_purposes, reason), purposes in others.items():
            if verdict_of_purposes == verdict:
                purposes_with_reason.append(f"{_listed(purposes)} ({reason})")
        if purposes_with_reason:
            parts.append(f"{head} {_listed(purposes_with_reason)}")
    if not parts:
        return "This machine was not examined."
    return f"This machine is {'; '.join(parts)}."


def _listed(words: Sequence[str]) -> str:
    """Return the words as a sentence lists them. For example: A, B and C"""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
