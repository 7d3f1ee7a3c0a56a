"""A gateway's orders are divided among engines: an order goes to the engine that serves its instrument.

A request has no instrument on the wire. It goes to the engine of the order that it names.
"""

from __future__ import annotations

import numpy as np

from exchange.compiled import cached_kernel
from exchange.instruments import engine_of
from exchange.settings import RunSettings
from gateway.mixed_orders import MixedOrders
from transports.frames import Bytes, Longs


class EngineChoice:
    """Says to which engine each message of a gateway's stream goes."""

    def __init__(self, settings: RunSettings) -> None:
        self._orders = MixedOrders.of(settings)
        engines = [engine_of(instrument, settings.engines) for instrument in range(settings.instruments)]
        self._engine_of_instrument: Longs = np.array(engines, np.int64)

    def engines_of(self, first_id: int, count: int) -> Longs:
        """Return the number of the engine of each of `count` messages from `first_id` on, shape (count,)."""
        return self._engine_of_instrument[self._orders.instruments(first_id, count)]


@cached_kernel()
def append_frames_of(
    engine: int,
    engines: Longs,
    source: Bytes,
    source_offsets: Longs,
    first: int,
    end: int,
    buffer: Bytes,
    offsets: Longs,
) -> int:
    """Copy the frames `first` to `end` - 1 that are for this engine. Returns how many these are.

    `engines` has the engine of each frame of the source. The copies stand in `buffer`, from its start on, as `offsets`
    has it.
    """
    count = 0
    to = 0
    for frame in range(first, end):
        if engines[frame] != engine:
            continue
        for at in range(source_offsets[frame], source_offsets[frame + 1]):
            buffer[to] = source[at]
            to += 1
        count += 1
        offsets[count] = to
    return count
