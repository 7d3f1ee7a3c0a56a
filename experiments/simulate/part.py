"""A part of a simulation: some of its instruments, one after the other. All that is sent to an executor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from experiments.simulate.instrument import InstrumentMatcher
from experiments.simulate.simulation import Simulation
from experiments.simulate.table import batch_of
from experiments.simulate.trades import TradesWriter, trades_of_part


@dataclass(frozen=True)
class MatchPart:
    """Gives a row for each instrument; with `trades`, a folder, the part's trades go into a file there."""

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
    """Does what a part does on a few orders, so that all is loaded when the clock starts."""

    simulation: Simulation

    def __call__(self, _part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        from matching_engine.trades import TradeColumns, copy_trades

        columns = TradeColumns.of(10_000)
        matcher = InstrumentMatcher(replace(self.simulation, instruments=1, orders=1_000))
        for _ in instruments:
            matcher.match(1, lambda answers: copy_trades(answers, columns.id, columns.price, columns.volume, 0))
        yield batch_of([])
