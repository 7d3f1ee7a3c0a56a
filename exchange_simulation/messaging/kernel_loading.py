"""Loads the kernels of links in a process before dozens of roles fork from it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from exchange_simulation.messaging.payload import MessageSource, Receipt
from exchange_simulation.messaging.roles import Links, open_links
from transports.base import Link, Pattern, PeerGone, TransportError, excuse_of
from transports.registry import connect

WARM_SIZE = 64
"""Bytes of the messages that load the kernels."""
WARM_S = 10.0
"""The longest time that such a message may take."""
UNUSED_ADDRESS = "127.0.0.1:1"
"""An address at which nobody listens."""


def load_with_messages(links: Links, patterns: Iterable[Pattern]) -> None:
    """Load the kernels of pairs and of these patterns, by messages and links within this process.

    This also shows a mistake in an address. PeerGone if a message does not come.
    """
    _send_both_ways(links)
    for pattern in patterns:
        _open(links, pattern)


def load_by_failed_connect(scheme: str, patterns: Iterable[Pattern]) -> None:
    """Load the kernels by connecting where nobody listens, since this process cannot reach the roles' broker."""
    source = MessageSource(WARM_SIZE)
    source.fill(1, time.monotonic_ns())
    Receipt(WARM_SIZE).add(source.batch, time.monotonic_ns())
    for pattern in (Pattern.PAIR, *patterns):
        with contextlib.suppress(TransportError):
            connect(f"{scheme}://{UNUSED_ADDRESS}", "warm", time.monotonic_ns(), pattern, ("warm",)).close()


def _send_both_ways(links: Links) -> None:
    """Send a message and another one back, over each kind of pair."""
    for one_way in (True, False):
        listener_end, connector_end = links.pair(WARM_SIZE, one_way=one_way)
        with contextlib.ExitStack() as stack:
            listener, connector = open_links((listener_end, connector_end), stack)
            for sender, receiver in ((connector, listener), (listener, connector)):
                _send_one_message(sender, receiver)


def _open(links: Links, pattern: Pattern) -> None:
    """Open a link of the pattern, which loads its kernels."""
    key = ("warm",) if pattern is Pattern.TOPIC else ()
    (listener_end,), connector_end = links.many(WARM_SIZE, pattern, (key,), key)
    with contextlib.ExitStack() as stack:
        # The listener is closed first, since the connector awaits its welcome.
        open_links((connector_end, listener_end), stack)


def _send_one_message(sender: Link, receiver: Link) -> None:
    """Send a message and receive it. PeerGone if it does not come within WARM_S."""
    source = MessageSource(WARM_SIZE)
    receipt = Receipt(WARM_SIZE)
    batch = receipt.empty_batch()
    sent = 0
    until_s = time.monotonic() + WARM_S
    source.fill(1, time.monotonic_ns())
    while not receipt.received:
        if time.monotonic() > until_s:
            excuse = excuse_of((sender, receiver))
            raise PeerGone(f"no message came through {receiver.url} within {WARM_S:g} s{excuse}")
        if sent < source.batch.count:
            sent = sender.send(source.batch, sent)
        if receiver.receive(batch):
            receipt.add(batch, time.monotonic_ns())
        for link in (sender, receiver):
            link.wait(time.monotonic_ns() + 1_000_000)
