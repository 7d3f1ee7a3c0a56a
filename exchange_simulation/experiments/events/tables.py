"""The market's events as typed columns: orders, trades, confirmations and quotes, from recorded runs and simulations.

    messages, answers, the end of the answers to each message ──▶ Market ──▶ an Arrow table for each kind of event

The time of an answer is the due time of the message that caused it, in ns since the stream's first message was due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exchange.market_ids import HIGHEST_NUMBER, NUMBER_BITS
from exchange.messages import ASK, BID, Cancelled, Confirmation, InstrumentQuote, Quote, Rejection, Trade, records_of
from exchange.order_mix import CANCEL, KINDS
from exchange_simulation.experiments.events.order_messages import Column, OrderMessages
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.reasons import REASONS
from matching_engine.tape import offsets_of
from spark.tables.schemas import AT, TIMESTAMP

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Columns = dict[str, Any]
"""The columns of a table, by name."""
NS_PER_US = 1_000
RUN_COLUMNS = {"experiment": pa.string(), "run": pa.string(), "pair": pa.int32(), "instrument": pa.int32()}
EVENT_COLUMNS = {"sequence": pa.int64(), "time_ns": pa.int64(), AT: TIMESTAMP, "clock": pa.string()}
WORD_OF_SIDE = {0: None, ASK: "ask", BID: "bid"}
WORD_OF_REASON = {0: None, **REASONS}
NUMBER = pa.int32()
ID = pa.int64()
WORD = pa.string()


@dataclass(frozen=True)
class Market:
    """One engine's streams of messages and answers, or a part of them."""

    instrument: int | None
    """The instrument of all rows; None if the messages say theirs."""
    messages: OrderMessages
    due_ns: Longs | None
    """When each message was due; None if they had no due times."""
    answers: Bytes
    """The encoded answers, one after the other."""
    ends: Longs
    """For each message, the offset in `answers` at which the answers to it end."""
    max_price: int
    cancelled: Longs | None = None
    """The lots that each message cancelled; None if no message is a request, so that the answers tell them all."""
    gateway: int | None = None
    """Whose stream it is; None if it is no gateway's, or several gateways'."""
    is_shared: bool = False
    """Whether several gateways' messages are in the stream, so that ids are market ids."""
    messages_before: int = 0
    """The number of messages before this part of the stream."""
    answers_before: int = 0
    """The number of answers before this part of the stream."""
    start_ns: int | None = None
    """The wall clock when the stream's first message was due; None if that is not known."""

    @cached_property
    def starts(self) -> Longs:
        """The offset of each answer."""
        return offsets_of(self.answers, ANSWER_SIZES)[:-1]

    @cached_property
    def causes(self) -> Longs:
        """The index of the message that caused each answer."""
        return np.searchsorted(self.ends, self.starts, "right")

    def order_rows(self) -> Columns:
        """Return a row for each order and request."""
        indexes = np.arange(len(self.messages))
        kind = self.messages.kind
        order_id = self.messages.order_id
        has_price = self.messages.price != 0
        has_volume = kind != KINDS.index(CANCEL)
        cancelled = self._cancelled()
        return {
            **self._event_columns(indexes + self.messages_before, indexes),
            **self._id_columns(self.messages.id, "id", "gateway"),
            "kind": _words(kind, dict(enumerate(KINDS))),
            "order_id": _number_where(order_id != 0, self._own_number(order_id), ID),
            "side": _words(self.messages.side, WORD_OF_SIDE),
            "price": _number_where(has_price, self.messages.price, NUMBER),
            "volume": _number_where(has_volume, self.messages.volume, NUMBER),
            "reject_reason": _words(self._reasons(), WORD_OF_REASON),
            "cancelled_volume": _number_where(cancelled != 0, cancelled, NUMBER),
        }

    def trade_rows(self) -> Columns:
        """Return a row for each trade of a resting order.

        The engine also sends a message to the incoming order for each price level, with the sum of these trades. Those
        messages have no rows.
        """
        answers, trades = records_of(Trade, self.answers, self.starts)
        incoming_id = self.messages.entering_id
        is_of_resting_order = trades["id"] != incoming_id[self.causes[answers]]
        answers = answers[is_of_resting_order]
        trades = trades[is_of_resting_order]
        causes = self.causes[answers]
        return {
            **self._event_columns(answers + self.answers_before, causes),
            "price": trades["price"],
            "volume": trades["volume"],
            "aggressor": _words(self.messages.side[causes], WORD_OF_SIDE),
            **self._id_columns(trades["id"], "resting_id", "resting_gateway"),
            **self._id_columns(incoming_id[causes], "incoming_id", "incoming_gateway"),
        }

    def confirmation_rows(self) -> Columns:
        """Return a row for each confirmation."""
        answers, confirmations = records_of(Confirmation, self.answers, self.starts)
        return {
            **self._event_columns(answers + self.answers_before, self.causes[answers]),
            **self._id_columns(confirmations["id"], "id", "gateway"),
        }

    def quote_rows(self) -> Columns:
        """Return a row for each change of the best prices; the price of a side without orders is null."""
        quote = Quote if self.instrument is not None else InstrumentQuote
        answers, quotes = records_of(quote, self.answers, self.starts)
        causes = self.causes[answers]
        return {
            **self._event_columns(answers + self.answers_before, causes),
            "bid": _number_where(quotes["bid"] != 0, quotes["bid"], NUMBER),
            "ask": _number_where(quotes["ask"] <= self.max_price, quotes["ask"], NUMBER),
            **self._id_columns(self.messages.id[causes], "incoming_id", "incoming_gateway"),
        }

    def _event_columns(self, indexes: Longs, causes: Longs) -> Columns:
        """Return EVENT_COLUMNS: `indexes` are those of the events in the stream, `causes` those of their messages."""
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
        columns = {"sequence": indexes + 1, "time_ns": time_ns, AT: at, "clock": clock}
        if self.instrument is None:
            columns["instrument"] = self.messages.instrument[causes]
        return columns

    def _id_columns(self, ids: Column, id_name: str, gateway_name: str) -> Columns:
        """Return the number that each id has at its gateway, and the gateway."""
        if self.is_shared:
            gateways: Any = np.asarray(ids, np.int64) >> NUMBER_BITS
        else:
            gateways = pa.repeat(pa.scalar(self.gateway, NUMBER), len(ids))
        return {id_name: self._own_number(ids), gateway_name: gateways}

    def _own_number(self, ids: Column) -> Column:
        return np.asarray(ids, np.int64) & HIGHEST_NUMBER if self.is_shared else ids

    def _reasons(self) -> Longs:
        """Return for each message the reason for which it was rejected; 0 if it was not."""
        answers, rejections = records_of(Rejection, self.answers, self.starts)
        reasons = np.zeros(len(self.messages), np.int64)
        reasons[self.causes[answers]] = rejections["reason"]
        return reasons

    def _cancelled(self) -> Longs:
        """Return the lots that each message cancelled."""
        if self.cancelled is not None:
            return self.cancelled
        answers, cancelled = records_of(Cancelled, self.answers, self.starts)
        volumes = np.zeros(len(self.messages), np.int64)
        volumes[self.causes[answers]] = cancelled["volume"]
        return volumes


def _words(numbers: Column, words: dict[int, str | None]) -> pa.Array:
    """Return the word of each number; the number itself, as text, if it has no word."""
    highest = max(*words, int(numbers.max(initial=0)))
    dictionary = [words.get(number, str(number)) for number in range(highest + 1)]
    indexes = pa.array(np.asarray(numbers, np.int32))
    return pa.DictionaryArray.from_arrays(indexes, pa.array(dictionary, pa.string())).cast(pa.string())


def _number_where(has_number: npt.NDArray[np.bool_], numbers: Column, kind: pa.DataType) -> pa.Array:
    """Return the numbers, null where there is none."""
    return pa.array(np.asarray(numbers, kind.to_pandas_dtype()), kind, mask=~has_number)


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema({**RUN_COLUMNS, **EVENT_COLUMNS, **columns})


@dataclass(frozen=True)
class EventTable:
    """A table of events: its columns, and the function that makes them from a market."""

    schema: pa.Schema
    columns_of: Callable[[Market], Columns]


TABLES = {
    "orders": EventTable(
        schema=_schema(
            gateway=NUMBER,
            id=ID,
            kind=WORD,
            order_id=ID,
            side=WORD,
            price=NUMBER,
            volume=NUMBER,
            reject_reason=WORD,
            cancelled_volume=NUMBER,
        ),
        columns_of=Market.order_rows,
    ),
    "trades": EventTable(
        schema=_schema(
            price=NUMBER,
            volume=NUMBER,
            aggressor=WORD,
            resting_gateway=NUMBER,
            resting_id=ID,
            incoming_gateway=NUMBER,
            incoming_id=ID,
        ),
        columns_of=Market.trade_rows,
    ),
    "confirmations": EventTable(
        schema=_schema(gateway=NUMBER, id=ID),
        columns_of=Market.confirmation_rows,
    ),
    "quotes": EventTable(
        schema=_schema(bid=NUMBER, ask=NUMBER, incoming_gateway=NUMBER, incoming_id=ID),
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
    if market.instrument is not None:
        run_values |= {"instrument": market.instrument}
    size = len(columns["sequence"])
    fields = []
    arrays = []
    for field in schema:
        if field.name in run_values:
            value = pa.scalar(run_values[field.name], RUN_COLUMNS[field.name])
            fields.append(field)
            arrays.append(pa.repeat(value, size))
        elif field.name in columns:
            fields.append(field)
            arrays.append(pa.array(columns[field.name]).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
