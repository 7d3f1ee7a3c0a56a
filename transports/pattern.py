"""Who talks to whom over a link: one of these stands in its Address; docs/transports.md has what carries them.

PAIR      listener ⇄ connector                        both send and receive
FAN_IN    listener ⇄ connectors                       receives from each, sends to all
QUEUE     connectors ─▶ one queue ─▶ listeners        each message goes to one of the listeners
FANOUT    listener ─▶ connectors                      each of them gets every message, and can reply to the listener
TOPIC     listener ─▶ those of the connectors who asked for its key      likewise
"""

from __future__ import annotations

from enum import Enum


class Pattern(Enum):
    """The value is its name for users."""

    PAIR = "pair"
    FAN_IN = "fan-in"
    QUEUE = "queue"
    FANOUT = "fanout"
    TOPIC = "topic"


TWO_ENDS = frozenset({Pattern.PAIR, Pattern.FAN_IN})
"""What every transport has: a run of the exchange needs no more."""
PUBLISHED = frozenset({Pattern.FANOUT, Pattern.TOPIC})
"""The listener publishes; its subscribers' replies come back another way."""
