"""Room in memory is frames and bytes: whichever runs out first."""

from __future__ import annotations

import time

import pytest

from tests.transports.conftest import joined
from transports.frames import FrameBatch


@pytest.mark.parametrize("size", [0, 3000], ids=["out of frames", "out of bytes"])
def test_a_full_pipe_has_no_room_to_wake_for(size: int) -> None:
    with joined(f"memory://room-{size}") as (_, connector):
        chunk = FrameBatch.of(*[bytes(size)] * 1000)
        while connector.send(chunk, 0):
            pass
        end_ns, calls = time.monotonic_ns() + 20_000_000, 0
        while time.monotonic_ns() < end_ns:
            connector.wait(end_ns, readable=False, writable=True)
            calls += 1
        assert calls <= 3
