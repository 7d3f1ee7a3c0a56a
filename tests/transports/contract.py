"""What the tests of the contract share: who is left out, frames to send, and a link that takes no more."""

from __future__ import annotations

import random
import time

import pytest

from transports.base import Link
from transports.frames import FrameBatch
from transports.registry import has_broker, transport_of

A_BROKER_HAS_ROOM = "a broker takes what nobody reads, until its memory is full"


def without_broker(url: str, why: str) -> None:
    """Leave the test out if the transport declares a broker between the two ends."""
    if has_broker(url):
        pytest.skip(why)


def frames(count: int, seed: int = 1) -> list[bytes]:
    source = random.Random(seed)
    return [source.randbytes(source.choice((1, 5, 10, 100, 3000))) for _ in range(count)]


def with_little_room(url: str) -> str:
    """Return the address with a high-water mark that is reached soon, if the transport takes one."""
    scheme = url.partition(":")[0]
    return f"{url}{'&' if '?' in url else '?'}hwm=1000" if "hwm" in transport_of(scheme).takes(scheme) else url


def fill(link: Link) -> FrameBatch:
    """Send until nothing more goes, since nobody reads at the other end; frames of which none goes."""
    chunk, in_vain, chunks = FrameBatch.of(*[bytes(100)] * 1000), 0, 0
    while in_vain < 5:
        if link.send(chunk, 0):
            in_vain, chunks = 0, chunks + 1
        else:
            link.wait(time.monotonic_ns() + 10_000_000, readable=False, writable=True)
            in_vain += 1
        if chunks == 1000:
            pytest.skip("somebody between takes whatever comes")
    return chunk
