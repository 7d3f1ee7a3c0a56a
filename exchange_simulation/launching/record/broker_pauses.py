"""A broker that stood still: it answered a look at its queues late, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LATE_S = 0.5
"""An answer that takes longer is late. A look is a few questions, of which a busy broker answers each within 0.1 s."""


def pause_words(broker: Mapping[str, Any] | None) -> str:
    """Return a sentence on a broker that stood still, from `broker` of a run's record; empty if it did not.

    A pause is seen by looks, one a second, so a pause of N seconds shows as an answer that took N - 1 to N seconds.
    """
    if not broker:
        return ""
    if "last_look" in broker:
        _, _, sentence = broker["last_look"].partition(": ")
        return f"a look at the broker's queues failed: {sentence}"
    slowest_s = broker.get("slowest_look_s", 0.0)  # runs of older versions have no such field
    if slowest_s < LATE_S:
        return ""
    return (
        f"the broker answered a look at its queues after {slowest_s:.1f} s: the broker or the whole machine stood "
        "still, which shows in the figures"
    )
