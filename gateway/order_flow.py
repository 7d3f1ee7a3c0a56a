"""Puts orders into batches: records one after the other, `packing` of them to a frame."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exchange.settings import RunSettings
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from gateway.tape import TapedOrders
from transports.frames import FrameBatch

LONGEST_BATCH = 1 << 16  # frames


class Orders(Protocol):
    """A source of orders."""

    def write(self, buffer: npt.NDArray[np.uint8], first_id: int, count: int) -> None:
        """Write the records of `count` orders from `first_id` on, from the buffer's start on."""


class OrderFlow:
    """Fills batches with the same bytes whatever the batches' sizes."""

    def __init__(self, orders: Orders, packing: int = 1) -> None:
        self._orders, self._packing = orders, packing
        self._ends = np.arange(1, LONGEST_BATCH + 1) * (packing * ORDER_BYTES)

    @classmethod
    def of(cls, settings: RunSettings) -> OrderFlow:
        orders = TapedOrders(Path(settings.tape)) if settings.tape else SeededOrders.of(settings)
        return cls(orders, settings.packing)

    def fill(self, batch: FrameBatch, first_id: int, count: int) -> None:
        """Make the batch hold orders first_id .. first_id + count - 1; the last frame may be shorter."""
        self._orders.write(batch.buffer, first_id, count)
        frames = -(-count // self._packing)
        batch.offsets[1 : frames + 1] = self._ends[:frames]
        batch.offsets[frames] = count * ORDER_BYTES
        batch.count = frames
