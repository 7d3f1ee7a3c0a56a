"""The facts of several links as those of one: counts add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from transports.confirm_times import CONFIRM_COUNTS, CONFIRM_NS, ConfirmTimes

MAX_PAYLOAD = "max_payload_bytes"
LIMITS = {MAX_PAYLOAD}
"""Numbers that are no counts."""


def sum_of_facts(facts_of_links: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of links together: counts added up, confirm times merged, others as the first link has them."""
    together: dict[str, Any] = {}
    confirm_times = ConfirmTimes()
    for facts in facts_of_links:
        confirm_times.add(facts.get(CONFIRM_NS, []), facts.get(CONFIRM_COUNTS, []))
        for name, value in facts.items():
            if _is_count(name, value) and name in together:
                together[name] += value
            else:
                together.setdefault(name, value)
    return {**together, **confirm_times.facts()}


def _is_count(name: str, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and name not in LIMITS
