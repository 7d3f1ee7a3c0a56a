"""The transport `delayed`: tcp whose listener handles each batch of frames `us` microseconds late.

Only `known_delays.py` installs this transport. The listener spins during the delay, since a sleep would add the time of
a wake-up. Its links lend no compiled calls, also with `us=0`, so that arms differ in the delay alone.
"""

from __future__ import annotations

import time
from typing import Any

from transports.base import Address, Link
from transports.declaration import Transport
from transports.frames import FrameBatch


def listen(address: Address) -> Link:
    from transports.tcp import link

    return _delayed(link.listen(address), int(address.options.get("us", "0")))


def connect(address: Address, until_ns: int) -> Link:
    from transports.tcp import link

    return _delayed(link.connect(address, until_ns), 0)


def _delayed(link: Any, delay_us: int) -> Link:
    """Make `receive` of the link return `delay_us` later if a frame has come; returns the link."""
    receive_at_once = link.receive

    def receive(batch: FrameBatch) -> int:
        frames: int = receive_at_once(batch)
        until_ns = time.monotonic_ns() + delay_us * 1_000
        if frames:
            while time.monotonic_ns() < until_ns:
                pass
        return frames

    link.receive = receive
    link.lend = lambda: None
    delayed: Link = link
    return delayed


TRANSPORT = Transport(
    places={"delayed": "port"},
    listen=listen,
    connect=connect,
    about={"delayed": "tcp with a known delay, to see whether compare finds it"},
    options={"us": ()},
    over_tcp=frozenset({"delayed"}),
)
