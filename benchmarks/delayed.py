"""The transport `delayed`: tcp whose listener handles each batch of frames `us` microseconds late.

Only `known_delays.py` installs it. The delay is spun, since a sleep would add a wake-up of its own. It lends no
compiled calls, also with `us=0`, so that arms differ in the delay alone.
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
    """The link, whose `receive` returns so much later if a frame has come."""
    receive_now = link.receive

    def receive(batch: FrameBatch) -> int:
        frames: int = receive_now(batch)
        until_ns = time.monotonic_ns() + delay_us * 1_000
        while frames and time.monotonic_ns() < until_ns:
            pass
        return frames

    link.receive, link.lend = receive, lambda: None
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
