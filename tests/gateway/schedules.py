"""The kinds of arrivals, and functions that make their due times."""

from __future__ import annotations

import numpy as np

from exchange.settings import RunSettings
from gateway.due_times import DueTimes, due_times_of

RATE = 8_000.0
PERIOD_NS = 125_000.0
KINDS = ["fixed", "poisson", "bursts:7", "bursts:100", "ramp:0.1..1", "ramp:1..0.25", "ramp:0.5..0.5"]


def source(arrivals: str, orders: int = 10_000, orders_per_s: float = RATE, seed: int = 1) -> DueTimes:
    settings = RunSettings(arrivals=arrivals, orders=orders, orders_per_s=orders_per_s, seed=seed)
    due_times = due_times_of(settings)
    assert due_times is not None
    return due_times


def written(due_times: DueTimes, *counts: int, earlier: int = 0) -> np.ndarray:
    """Return due times that were written in blocks of these sizes, from the order after the first `earlier` ones on."""
    blocks = [np.zeros(count, np.int64) for count in counts]
    for block in blocks:
        due_times.write(block, earlier)
        earlier += len(block)
    return np.concatenate(blocks)
