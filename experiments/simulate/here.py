"""A simulation in this process alone, part after part: what Spark's executors do, without Spark."""

from __future__ import annotations

import time

import pyarrow as pa

from experiments.simulate.part import MatchPart, WarmUp
from experiments.simulate.ran import OnParts, Ran
from experiments.simulate.table import in_order


def simulate_here(work: MatchPart, parts: int, on_parts: OnParts) -> Ran:
    instruments = work.simulation.instruments
    start_s = time.monotonic()
    list(WarmUp(work.simulation)(0, (1,)))
    ready_s = time.monotonic()
    batches: list[pa.RecordBatch] = []
    for part in range(parts):
        batches += work(part, numbers_of(part, parts, instruments))
        on_parts(part + 1)
    rows = in_order(batches)
    return Ran(rows, start_up_s=ready_s - start_s, matching_s=time.monotonic() - ready_s)


def numbers_of(part: int, parts: int, instruments: int) -> range:
    """The part's instruments, as Spark would cut them."""
    return range(1 + part * instruments // parts, 1 + (part + 1) * instruments // parts)
