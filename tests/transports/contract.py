"""Helpers of the tests of the contract: they skip a transport, make frames, and fill a link."""

from __future__ import annotations

import random
import time

import pytest

from transports.base import Link
from transports.frames import FrameBatch
from transports.registry import has_broker, transport_of

A_BROKER_HAS_ROOM = "a broker takes frames that nobody reads until its memory is full"


def skip_with_broker(url: str, reason: str) -> None:
    """Skip the test if the transport declares a broker between the two ends."""
    if has_broker(url):
        pytest.skip(reason)


def frames(count: int, seed: int = 1) -> list[bytes]:
    """Random frames of five sizes, the same for the same seed."""
    source = random.Random(seed)
    return [source.randbytes(source.choice((1, 5, 10, 100, 3000))) for _ in range(count)]


def with_little_room(url: str) -> str:
    """Return the address with a high-water mark that is reached soon, if the transport takes one."""
    scheme = url.partition(":")[0]
    if "hwm" not in transport_of(scheme).option_names(scheme):
        return url
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}hwm=1000"


def fill(link: Link) -> FrameBatch:
    """Send until the link takes nothing more, since nobody reads at the other end; return frames that it does not take.

    Skip the test if the link takes 1,000 batches.
    """
    batch = FrameBatch.of(*[bytes(100)] * 1000)
    batches_taken = 0
    refusals = 0
    while refusals < 5:
        if link.send(batch, 0):
            refusals = 0
            batches_taken += 1
        else:
            link.wait(time.monotonic_ns() + 10_000_000, readable=False, writable=True)
            refusals += 1
        if batches_taken == 1000:
            pytest.skip("a process between the two ends takes all frames")
    return batch
