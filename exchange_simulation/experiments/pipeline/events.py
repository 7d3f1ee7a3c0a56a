"""The market events of a recorded run: orders, trades, confirmations and quotes, as typed columns.

    orders.bin ── matched again, a block at a time ──▶ the answers to each order ─┬─▶ Arrow rows of each kind of event
    answers.bin ── must be equal to those answers ─────────────────────────────────┘

The time of an answer is the due time of the order that caused it, in ns since the gateway's first order was due.
Ingest puts the rows into the tables of many runs; `exchange run --events` writes those of its run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exchange.instances import MAX_PAIRS, named
from exchange.measurements import NS_PER_S
from exchange.messages import LAYOUTS, MalformedMessage, Order
from exchange.record_kinds import RunRecord
from exchange.records import TRAFFIC
from exchange.words import printable
from exchange_simulation.experiments.events import SCHEMAS, TABLES, Bytes, Longs, Market, event_rows
from exchange_simulation.launching.errors import users_mistake, writing
from exchange_simulation.launching.files import whole_file
from exchange_simulation.launching.record.reading import read_record
from gateway.tape import check_due, due_path, map_file, replayable_records
from matching_engine.encoding import SMALLEST_ANSWER
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.tape import ANSWER_BYTES
from spark.dataset.ingesting import EventTables, RunSource
from spark.errors import RunUnreadableError
from spark.run_facts import experiment_of
from spark.tables.schemas import PAIR
from spark.tables.spool_tables import SpoolTables, tables_of_spool
from spark.tables.table_writer import TableWriter
from transports.frames import LARGEST_FRAME, FrameBatch

BLOCK_ORDERS = 1 << 15
"""Orders of a block. A block is large, since an Arrow call takes as long for a few rows as for ten thousand."""
ORDER_BYTES = LAYOUTS[Order].size


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run with recorded streams: its folder, its names, the settings of its engine, and the starts of its clocks."""

    folder: Path
    experiment: str
    run: str
    policy: str
    max_price: int
    starts_ns: Mapping[int, int]
    """By pair, the wall clock when the gateway's first order was due; a pair may be missing."""

    @classmethod
    def of(cls, folder: Path, experiment: str, run: str, spool: SpoolTables) -> RecordedRun:
        """Return the run in `folder`, with the engine's settings of its run.json."""
        settings_of_old_runs = {"policy": "price-time", "max_price": 999}
        engine = settings_of_old_runs | read_record(folder / "run.json", RunRecord)["settings"]
        return cls(
            folder=folder,
            experiment=experiment,
            run=run,
            policy=engine["policy"],
            max_price=engine["max_price"],
            starts_ns=starts_of_clocks(spool.kinds[TRAFFIC]),
        )

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield rows of each table, a block of orders at a time. ValueError if the streams are damaged."""
        for pair in range(1, MAX_PAIRS + 1):
            if (self.folder / f"{named('orders', pair)}.bin").exists():
                values = {"experiment": self.experiment, "run": self.run, PAIR: pair}
                for market in self._markets(pair):
                    for table in TABLES:
                        yield table, event_rows(table, market, **values)

    def _markets(self, pair: int) -> Iterator[Market]:
        """Yield the market of a pair, block by block. ValueError if its streams are damaged or disagree."""
        orders_file = self.folder / f"{named('orders', pair)}.bin"
        answers_file = self.folder / f"{named('answers', pair)}.bin"
        due_file = due_path(orders_file)
        try:
            records = replayable_records(orders_file)
            if not records.has_plain_orders_only:
                raise ValueError(
                    f"{orders_file} has more kinds of messages than plain orders, for which there are no tables"
                )
            due_ns = None
            if due_file.exists():
                check_due(due_file, records.records)
                due_ns = map_file(due_file).view("<u8")
            yield from self._matched_again(pair, map_file(orders_file), map_file(answers_file), due_ns)
        except (MalformedMessage, ValueError, OSError) as error:
            raise ValueError(f"the streams in {self.folder} give no events: {error}") from None

    def _matched_again(self, pair: int, orders: Bytes, answers: Bytes, due_ns: Longs | None) -> Iterator[Market]:
        """Match the orders once more; yield each block with its answers, which must be the recorded ones.

        ValueError if the answers are not those of the matching engine.
        """
        # Each order is a frame. With packing, the engine puts all answers to a frame into one frame.
        engine = MatchingEngine(OrderBook(self.max_price, self.policy), packing=2)
        frames = FrameBatch(ANSWER_BYTES // SMALLEST_ANSWER, ANSWER_BYTES)
        batch = FrameBatch(1, LARGEST_FRAME)  # its own memory is replaced by the stream's
        orders_before = 0
        answers_before = 0
        position = 0
        count = len(orders) // ORDER_BYTES
        for first in range(0, count, BLOCK_ORDERS):
            batch.count = min(BLOCK_ORDERS, count - first)
            batch.buffer = orders[first * ORDER_BYTES : (first + batch.count) * ORDER_BYTES]
            batch.offsets = np.arange(batch.count + 1) * ORDER_BYTES
            taken = 0
            stop = HandleStop.ROOM
            while stop is not HandleStop.DONE:
                frames.clear()
                end, stop = engine.handle(batch, frames, taken)
                matched_again = frames.span(0, frames.count)
                if not np.array_equal(matched_again, answers[position : position + len(matched_again)]):
                    raise ValueError("its answers are not those of the matching engine to its orders")
                market = Market(
                    instrument=pair,
                    orders=batch.span(taken, end).view(LAYOUTS[Order].dtype),
                    due_ns=None if due_ns is None else due_ns[first + taken : first + end].astype(np.int64),
                    answers=matched_again,
                    ends=frames.offsets[1 : frames.count + 1],
                    max_price=self.max_price,
                    orders_before=orders_before,
                    answers_before=answers_before,
                    start_ns=self.starts_ns.get(pair),
                )
                yield market
                orders_before += end - taken
                answers_before += len(market.starts)
                position += len(matched_again)
                taken = end
        if position < len(answers):
            raise ValueError(f"it has {len(answers) - position:,} bytes of answers more than its orders cause")


def starts_of_clocks(traffic: pa.Table) -> dict[int, int]:
    """Return by pair when its gateway's clock started, from records of traffic: the wall clock in ns.

    A gateway reports a second when it is over; the earliest start counts, since a report may be late. A run's last
    second is shorter, and counts only where there is no other.
    """
    starts: dict[int, int] = {}
    for pair in pc.unique(traffic[PAIR].drop_null()).to_pylist():
        of_pair = traffic.filter(pc.equal(traffic[PAIR], pair))
        last = pc.max(of_pair["second"])
        whole_seconds = of_pair.filter(pc.less(of_pair["second"], last))
        counted = whole_seconds if whole_seconds.num_rows else of_pair
        ends = pc.multiply(pc.add(counted["second"].cast(pa.int64()), 1), NS_PER_S)
        starts[pair] = pc.min(pc.subtract(counted["wall_ns"], ends)).as_py()
    return starts


def rows_of_source(source: RunSource, spool: SpoolTables) -> Iterator[tuple[str, pa.Table]]:
    """Yield rows of the tables of events from a run's recorded streams. RunUnreadableError if these are damaged."""
    experiment, run = source.name
    try:
        yield from RecordedRun.of(source.spool.parent.resolve(), experiment, run, spool).rows()
    except ValueError as error:
        raise RunUnreadableError(printable(str(error))) from error


EVENT_TABLES = EventTables(SCHEMAS, rows_of_source)
"""The tables that `exchange spark ingest --events` makes."""


def write_events(folder: Path) -> Path:
    """Write a file for each table to FOLDER/events, and return this folder. No file is ever seen in part. UserError."""
    run = RecordedRun.of(folder, experiment_of(folder), folder.name, tables_of_spool(folder / "spool"))
    events = folder / "events"
    with users_mistake(ValueError), writing(events):
        events.mkdir(exist_ok=True)
        with ExitStack() as files:
            writers = {}
            for name, schema in SCHEMAS.items():
                file = files.enter_context(whole_file(events / f"{name}.parquet"))
                writers[name] = files.enter_context(TableWriter(file, schema))
            for name, rows in run.rows():
                writers[name].add(rows)
    return events
