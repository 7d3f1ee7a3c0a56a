"""Who talks to whom over a link: one of these stands in its Address; docs/transports.md has what carries them.

PAIR      listener ⇄ connector                        both send and receive
FAN_IN    listener ⇄ connectors                       receives from each, sends to all
QUEUE     connectors ─▶ one queue ─▶ listeners        each message goes to one of the listeners
FANOUT    listeners ─▶ connectors                     each of them gets every message, and can reply to a lone listener
TOPIC     listeners ─▶ those of the connectors who asked for the key     likewise
REQUESTS  connectors ⇄ listeners                      each answer goes to who asked: an answer for every frame, in order
SCAN      the same, but all answers lie in one queue, in which each connector looks for its own
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
    REQUESTS = "requests"
    SCAN = "scan"


ASKED = frozenset({Pattern.REQUESTS, Pattern.SCAN})
"""The listener sends a frame for each that it received, in their order."""
TWO_ENDS = frozenset({Pattern.PAIR, Pattern.FAN_IN})
"""What every transport has: a run of the exchange needs no more."""
PUBLISHED = frozenset({Pattern.FANOUT, Pattern.TOPIC})
"""Listeners publish; subscribers' replies come back another way."""
MANY_LISTENERS = PUBLISHED | {Pattern.QUEUE}
"""Without a broker, who connects is connected to each of them."""
