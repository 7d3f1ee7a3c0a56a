"""The events of a partition as Parquet files in memory, in the columns of recorded runs' events.

    Block ──▶ Market ──▶ rows of each table ──▶ a Parquet file for every ROWS_A_FILE rows ──▶ this process or Spark

Spark gets whole files (see `on_spark`), since its own Parquet writer takes single rows and is five times slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from exchange.messages import LAYOUTS, Order
from exchange_simulation.experiments.events.order_messages import plain_messages
from exchange_simulation.experiments.events.tables import Market, event_rows
from exchange_simulation.experiments.simulate.simulation import Block
from exchange_simulation.launching.errors import UserError
from spark.tables.schemas import experiment_folder
from spark.tables.table_writer import TableWriter

BLOCK_ORDERS = 1 << 15
"""Orders of a block. A block is large, since an Arrow call takes as long for a few rows as for ten thousand."""
ROWS_A_FILE = 1 << 22
"""Rows of a Parquet file: some 20 MB, which are held in memory as a whole."""
NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class WantedEvents:
    """The tables of events to make, the name of the run, and the rate of each instrument's orders."""

    tables: tuple[str, ...]
    run: str
    orders_per_s: float

    @property
    def folder(self) -> str:
        """The name of the run's folder in each table."""
        return experiment_folder(self.run)


class TableFile(NamedTuple):
    """A whole Parquet file."""

    table: str
    file: str
    """The file's name: PARTITION-NUMBER-ROWS. It has the partition that made it, its number in there, and its rows."""
    content: bytes


class WrittenTable(NamedTuple):
    """The size of the files that were written to a table."""

    files: int
    rows: int
    bytes: int


def hidden_folder(events: WantedEvents) -> str:
    """Return the folder that holds the files until all are written. Readers of tables ignore this folder."""
    return f".simulated-{events.folder}"


def refuse_existing(events: WantedEvents, tables: str, tables_with_run: Sequence[str]) -> None:
    """Raise UserError if `tables_with_run`, the tables that already have rows of a run of this name, has any."""
    if tables_with_run:
        first = tables_with_run[0]
        raise UserError(f"{tables} holds {first} of {events.run} already: choose another --name, or other --tables")


def rows_in(file: str) -> int:
    """Return the number of rows from the name of a TableFile, PARTITION-NUMBER-ROWS."""
    _, _, rows = file.split("-")
    return int(rows)


class EventFiles:
    """Collects the events of a partition's instruments, one after the other, and yields each file when it is full."""

    def __init__(self, events: WantedEvents, partition: int, max_price: int) -> None:
        self._events = events
        self._partition = partition
        self._max_price = max_price
        self._open: dict[str, _OpenFile] = {}
        self._files = 0
        self._answers = 0
        """The number of answers of the current instrument so far."""

    def add(self, block: Block) -> Iterator[TableFile]:
        """Add the events of an instrument's next block; yield the files that became full."""
        if block.first == 0:
            self._answers = 0
        market = self._market(block)
        self._answers += len(market.starts)
        for table in self._events.tables:
            yield from self._add(table, event_rows(table, market, run=self._events.run))

    def finish(self) -> Iterator[TableFile]:
        """Yield the last file of each table."""
        for table in tuple(self._open):
            yield self._closed(table)

    def _market(self, block: Block) -> Market:
        """Return the orders and answers of a block. The orders are due at the rate of the events, from 0 on."""
        messages = plain_messages(block.orders.view(LAYOUTS[Order].dtype))
        count = block.answers.count
        indexes = np.arange(block.first, block.first + len(messages))
        return Market(
            instrument=block.instrument,
            messages=messages,
            due_ns=(indexes * (NS / self._events.orders_per_s)).astype(np.int64),
            answers=block.answers.span(0, count),
            ends=block.answers.offsets[1 : count + 1],
            max_price=self._max_price,
            messages_before=block.first,
            answers_before=self._answers,
        )

    def _add(self, table: str, rows: pa.Table) -> Iterator[TableFile]:
        """Add rows to the open file of a table; yield the file if it is full."""
        if not rows.num_rows:
            return
        if table not in self._open:
            self._open[table] = _OpenFile(rows.schema)
        file = self._open[table]
        file.add(rows)
        if file.rows >= ROWS_A_FILE:
            yield self._closed(table)

    def _closed(self, table: str) -> TableFile:
        """Close the open file of a table, and return it."""
        file = self._open.pop(table)
        self._files += 1
        name = f"{self._partition:06}-{self._files:06}-{file.rows}"
        return TableFile(table=table, file=name, content=file.close())


class _OpenFile:
    """A Parquet file in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = TableWriter(self._sink, schema)

    @property
    def rows(self) -> int:
        return self._writer.rows

    def add(self, rows: pa.Table) -> None:
        self._writer.add(rows)

    def close(self) -> bytes:
        self._writer.close()
        content: bytes = self._sink.getvalue().to_pybytes()
        return content
