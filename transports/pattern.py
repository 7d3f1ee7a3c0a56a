"""Who talks to whom over a link: one of these stands in its Address; docs/transports.md draws them.

PAIR      listener ⇄ connector                                   both send and receive
FAN_IN    listener ⇄ connectors                                  receives from each, sends to all
QUEUE     connectors ─▶ one queue ─▶ listeners                   each message goes to one of the listeners
"""

from __future__ import annotations

from enum import Enum


class Pattern(Enum):
    """The value is its name for users."""

    PAIR = "pair"
    FAN_IN = "fan-in"
    QUEUE = "queue"


TWO_ENDS = frozenset({Pattern.PAIR, Pattern.FAN_IN})
"""What every transport has: a run of the exchange needs no more."""
