"""Parts of a simulation: each is some instruments, matched one after the other, in this process or by Spark."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from experiments.simulate.rows import batch_of, in_order
from experiments.simulate.simulation import InstrumentMatcher, Simulation
from experiments.simulate.trades import TradesWriter, trades_of_part
from matching_engine.encoding import TradeColumns, copy_trades

OnParts = Callable[[int], None]
"""Called now and then with the number of finished parts."""


@dataclass(frozen=True)
class Matched:
    """A matched simulation: every instrument's row, and the time before and after the first order."""

    rows: pa.Table
    start_up_s: float
    matching_s: float
    notes: tuple[str, ...] = ()
    """Sentences for the user."""


@dataclass(frozen=True)
class MatchPart:
    """Gives a row for each instrument of a part, and writes the part's trades into `trades`, a folder, if given.

    It is all that an executor receives.
    """

    simulation: Simulation
    trades: Path | None = None

    def __call__(self, part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        matcher = InstrumentMatcher(self.simulation)
        with contextlib.ExitStack() as files:
            writer: TradesWriter | None = None
            if self.trades:
                writer = files.enter_context(trades_of_part(self.trades, part))
            rows = [matcher.match(number, writer.of(number) if writer else None) for number in instruments]
        yield batch_of(rows)


@dataclass(frozen=True)
class WarmUp:
    """Matches a few orders as a part would, so that everything is loaded before the clock starts."""

    simulation: Simulation

    def __call__(self, _part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        columns = TradeColumns.of(10_000)
        matcher = InstrumentMatcher(replace(self.simulation, instruments=1, orders=1_000))
        for _ in instruments:
            matcher.match(1, lambda answers: copy_trades(answers, columns.id, columns.price, columns.volume, 0))
        yield batch_of([])


def match_in_this_process(work: MatchPart, parts: int, on_parts: OnParts) -> Matched:
    """All parts, one after the other."""
    instruments = work.simulation.instruments
    start_s = time.monotonic()
    list(WarmUp(work.simulation)(0, (1,)))
    ready_s = time.monotonic()
    batches: list[pa.RecordBatch] = []
    for part in range(parts):
        batches += work(part, numbers_of(part, parts, instruments))
        on_parts(part + 1)
    rows = in_order(batches)
    return Matched(rows, start_up_s=ready_s - start_s, matching_s=time.monotonic() - ready_s)


def numbers_of(part: int, parts: int, instruments: int) -> range:
    """The numbers of a part's instruments, cut as Spark would cut them."""
    return range(1 + part * instruments // parts, 1 + (part + 1) * instruments // parts)
