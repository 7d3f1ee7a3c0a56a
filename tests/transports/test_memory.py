"""The room of a memory link is limited in frames and in bytes."""

from __future__ import annotations

import time

import pytest

from tests.transports.conftest import joined
from transports.frames import FrameBatch


@pytest.mark.parametrize("size", [0, 3000], ids=["out of frames", "out of bytes"])
def test_a_wait_for_room_on_a_full_link_sleeps(size: int) -> None:
    with joined(f"memory://room-{size}") as (_, connector):
        batch = FrameBatch.of(*[bytes(size)] * 1000)
        while connector.send(batch, 0):
            pass
        end_ns = time.monotonic_ns() + 20_000_000
        calls = 0
        while time.monotonic_ns() < end_ns:
            connector.wait(end_ns, readable=False, writable=True)
            calls += 1
        assert calls <= 3, "the waits do not sleep"
