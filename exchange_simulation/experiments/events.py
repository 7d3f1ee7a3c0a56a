"""The market's events as typed columns: orders, trades, confirmations and quotes, from recorded runs and simulations.

    orders, answers, the end of the answers to each order ──▶ Market ──▶ an Arrow table for each kind of event

The time of an answer is the due time of the order that caused it, in ns since the stream's first order was due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exchange.messages import BID, Confirmation, Quote, Trade, records_of
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.tape import offsets_of
from spark.tables.schemas import AT, TIMESTAMP

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Columns = dict[str, Any]
"""The columns of a table, by name."""
NS_PER_US = 1_000
RUN_COLUMNS = {"experiment": pa.string(), "run": pa.string(), "pair": pa.int32(), "instrument": pa.int32()}
EVENT_COLUMNS = {"sequence": pa.int64(), "time_ns": pa.int64(), AT: TIMESTAMP, "clock": pa.string()}


@dataclass(frozen=True)
class Market:
    """One instrument's streams of orders and answers, or a part of them."""

    instrument: int
    orders: npt.NDArray[np.void]
    """A structured array, in the layout of an order."""
    due_ns: Longs | None
    """When each order was due; None if the orders had no due times."""
    answers: Bytes
    """The encoded answers, one after the other."""
    ends: Longs
    """For each order, the offset in `answers` at which the answers to it end."""
    max_price: int
    orders_before: int = 0
    """The number of orders before this part of the stream."""
    answers_before: int = 0
    """The number of answers before this part of the stream."""
    start_ns: int | None = None
    """The wall clock when the stream's first order was due; None if that is not known."""

    @cached_property
    def starts(self) -> Longs:
        """The offset of each answer."""
        return offsets_of(self.answers, ANSWER_SIZES)[:-1]

    @cached_property
    def causes(self) -> Longs:
        """The index of the order that caused each answer."""
        return np.searchsorted(self.ends, self.starts, "right")

    def order_rows(self) -> Columns:
        """Return a row for each order."""
        indexes = np.arange(len(self.orders))
        return {
            **self._event_columns(indexes + self.orders_before, indexes),
            "id": self.orders["id"],
            "side": self._side(indexes),
            "price": self.orders["price"],
            "volume": self.orders["volume"],
        }

    def trade_rows(self) -> Columns:
        """Return a row for each trade of a resting order.

        The engine also sends a message to the incoming order for each price level, with the sum of these trades. Those
        messages have no rows.
        """
        answers, trades = records_of(Trade, self.answers, self.starts)
        is_of_resting_order = trades["id"] != self.orders["id"][self.causes[answers]]
        answers = answers[is_of_resting_order]
        trades = trades[is_of_resting_order]
        causes = self.causes[answers]
        return {
            **self._event_columns(answers + self.answers_before, causes),
            "price": trades["price"],
            "volume": trades["volume"],
            "aggressor": self._side(causes),
            "resting_id": trades["id"],
            "incoming_id": self.orders["id"][causes],
        }

    def confirmation_rows(self) -> Columns:
        """Return a row for each confirmation."""
        answers, confirmations = records_of(Confirmation, self.answers, self.starts)
        return {**self._event_columns(answers + self.answers_before, self.causes[answers]), "id": confirmations["id"]}

    def quote_rows(self) -> Columns:
        """Return a row for each change of the best prices; the price of a side without orders is null."""
        answers, quotes = records_of(Quote, self.answers, self.starts)
        causes = self.causes[answers]
        return {
            **self._event_columns(answers + self.answers_before, causes),
            "bid": pa.array(quotes["bid"], pa.int32(), mask=quotes["bid"] == 0),
            "ask": pa.array(quotes["ask"], pa.int32(), mask=quotes["ask"] > self.max_price),
            "incoming_id": self.orders["id"][causes],
        }

    def _event_columns(self, indexes: Longs, causes: Longs) -> Columns:
        """Return EVENT_COLUMNS: `indexes` are those of the events in the stream, `causes` those of their orders."""
        size = len(causes)
        if self.due_ns is None:
            time_ns = pa.nulls(size, pa.int64())
            clock = pa.nulls(size, pa.string())
        else:
            time_ns = self.due_ns[causes]
            clock = pa.repeat("due", size).cast(pa.string())
        if self.due_ns is None or self.start_ns is None:
            at = pa.nulls(size, TIMESTAMP)
        else:
            at = pa.array((self.start_ns + self.due_ns[causes]) // NS_PER_US, pa.int64()).cast(TIMESTAMP)
        return {"sequence": indexes + 1, "time_ns": time_ns, AT: at, "clock": clock}

    def _side(self, indexes: Longs) -> pa.Array:
        """Return `ask` or `bid` for each of these orders."""
        is_bid = pa.array((self.orders["side"][indexes] == BID).astype(np.int32))
        return pa.DictionaryArray.from_arrays(is_bid, ["ask", "bid"]).cast(pa.string())


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema({**RUN_COLUMNS, **EVENT_COLUMNS, **columns})


NUMBER = pa.int32()
ID = pa.int64()
WORD = pa.string()


@dataclass(frozen=True)
class EventTable:
    """A table of events: its columns, and the function that makes them from a market."""

    schema: pa.Schema
    columns_of: Callable[[Market], Columns]


TABLES = {
    "orders": EventTable(
        schema=_schema(id=ID, side=WORD, price=NUMBER, volume=NUMBER),
        columns_of=Market.order_rows,
    ),
    "trades": EventTable(
        schema=_schema(price=NUMBER, volume=NUMBER, aggressor=WORD, resting_id=ID, incoming_id=ID),
        columns_of=Market.trade_rows,
    ),
    "confirmations": EventTable(
        schema=_schema(id=ID),
        columns_of=Market.confirmation_rows,
    ),
    "quotes": EventTable(
        schema=_schema(bid=NUMBER, ask=NUMBER, incoming_id=ID),
        columns_of=Market.quote_rows,
    ),
}
"""All tables of events, by name."""


SCHEMAS = {name: table.schema for name, table in TABLES.items()}
"""The columns of each table, with all RUN_COLUMNS."""


def event_rows(table: str, market: Market, **run_values: Any) -> pa.Table:
    """Return the rows of one table. `run_values` has values of RUN_COLUMNS; columns without a value are left out."""
    schema = TABLES[table].schema
    columns = TABLES[table].columns_of(market)
    run_values |= {"instrument": market.instrument}
    size = len(columns["sequence"])
    fields = []
    arrays = []
    for field in schema:
        if field.name in run_values:
            value = pa.scalar(run_values[field.name], RUN_COLUMNS[field.name])
            fields.append(field)
            arrays.append(pa.repeat(value, size))
        elif field.name not in RUN_COLUMNS:
            fields.append(field)
            arrays.append(pa.array(columns[field.name]).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
