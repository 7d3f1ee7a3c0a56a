"""The market events of a recorded run: orders, trades, confirmations and quotes, as typed columns.

    orders.bin ── matched again ──▶ the answers to each order ─┬─▶ an Arrow table for each kind of event
    answers.bin ── must be equal to those answers ─────────────┘

The time of an answer is the due time of the order that caused it, in ns since the gateway's first order was due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from exchange.instances import MAX_PAIRS, named
from exchange.messages import LAYOUTS, MalformedMessage, Order
from exchange.record_kinds import RunRecord
from exchange_simulation.experiments.events import TABLES, Bytes, Longs, Market, event_rows
from exchange_simulation.launching.errors import users_mistake, writing
from exchange_simulation.launching.files import whole_file
from exchange_simulation.launching.record.reading import read_record
from gateway.tape import check_due, due_path, map_file, replayable_records
from matching_engine.encoding import SMALLEST_ANSWER
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.tape import ANSWER_BYTES, batches, order_offsets
from transports.frames import FrameBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark.dataset.ingesting import RunSource


ROWS = 1 << 18
"""The most rows of a batch for Spark, and of a row group of a file."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run with recorded streams: its folder, the settings of its engine, and values of its rows' first columns."""

    folder: Path
    experiment: str
    run: str
    policy: str
    max_price: int
    part: int = 0

    @classmethod
    def of(cls, folder: Path, experiment: str, run: str, part: int = 0) -> RecordedRun:
        """Return the run in `folder`, with the engine's settings of its run.json."""
        settings_of_old_runs = {"policy": "price-time", "max_price": 999}
        engine = settings_of_old_runs | read_record(folder / "run.json", RunRecord)["settings"]
        return cls(
            folder=folder,
            experiment=experiment,
            run=run,
            part=part,
            policy=engine["policy"],
            max_price=engine["max_price"],
        )

    @property
    def run_values(self) -> dict[str, Any]:
        """The values of the first columns of the run's rows."""
        return {"experiment": self.experiment, "run": self.run, "part": self.part}

    def markets(self) -> Iterator[Market]:
        """Yield the market of each pair of gateway and engine; the pair's number is the instrument."""
        for pair in range(1, MAX_PAIRS + 1):
            if (self.folder / f"{named('orders', pair)}.bin").exists():
                yield self._read(pair)

    def _read(self, pair: int) -> Market:
        """Return the market of a pair from its streams. ValueError if they are damaged or contradict each other."""
        orders_file = self.folder / f"{named('orders', pair)}.bin"
        answers_file = self.folder / f"{named('answers', pair)}.bin"
        due_file = due_path(orders_file)
        try:
            records = replayable_records(orders_file)
            if not records.has_plain_orders_only:
                raise ValueError(
                    f"{orders_file} has more kinds of messages than plain orders, for which there are no tables"
                )
            orders = map_file(orders_file)
            answers = map_file(answers_file)
            due_ns = None
            if due_file.exists():
                check_due(due_file, records.records)
                due_ns = map_file(due_file).view("<u8").astype(np.int64)
            ends = self._ends(orders, answers)
        except (MalformedMessage, ValueError, OSError) as error:
            raise ValueError(f"the streams in {self.folder} give no events: {error}") from None
        return Market(
            instrument=pair,
            orders=orders.view(LAYOUTS[Order].dtype),
            due_ns=due_ns,
            answers=answers,
            ends=ends,
            max_price=self.max_price,
        )

    def _ends(self, orders: Bytes, answers: Bytes) -> Longs:
        """Return, for each order, the offset at which its answers end. The orders are matched again for this.

        ValueError if the answers are not those of the matching engine.
        """
        # Each order is a frame. With packing, the engine puts all answers to a frame into one frame.
        engine = MatchingEngine(OrderBook(self.max_price, self.policy), packing=2)
        frames = FrameBatch(ANSWER_BYTES // SMALLEST_ANSWER, ANSWER_BYTES)
        ends = []
        position = 0
        for batch in batches(orders, order_offsets(orders)):
            first = 0
            stop = HandleStop.ROOM
            while stop is not HandleStop.DONE:
                frames.clear()
                first, stop = engine.handle(batch, frames, first)
                matched_again = frames.span(0, frames.count)
                if not np.array_equal(matched_again, answers[position : position + len(matched_again)]):
                    raise ValueError("its answers are not those of the matching engine to its orders")
                ends.append(position + frames.offsets[1 : frames.count + 1])
                position += len(matched_again)
        if position < len(answers):
            raise ValueError(f"it has {len(answers) - position:,} bytes of answers more than its orders cause")
        return np.concatenate(ends)


@dataclass(frozen=True)
class EventRows:
    """Makes the rows of one table from recorded runs. A worker of Spark receives only this object."""

    table: str
    runs: tuple[RecordedRun, ...]

    def __call__(self, _partition: int, numbers: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the runs with these numbers, which count from 1."""
        for number in numbers:
            run = self.runs[number - 1]
            for market in run.markets():
                yield from event_rows(self.table, market, **run.run_values).to_batches(max_chunksize=ROWS)


def event_tables(spark: SparkSession, sources: Sequence[RunSource], parts: Sequence[int]) -> dict[str, DataFrame]:
    """Return the tables of these runs' events; a run is a partition. `parts` has the part of each run."""
    from spark.sessions.partitions import each_number

    folders = [source.spool.parent.resolve() for source in sources]
    runs = []
    for folder, source, part in zip(folders, sources, parts, strict=True):
        experiment, run = source.name
        runs.append(RecordedRun.of(folder, experiment, run, part))
    tables = {}
    for name, table in TABLES.items():
        rows = EventRows(name, tuple(runs))
        tables[name] = each_number(spark, len(runs), rows, table.schema, len(runs))
    return tables


def write_events(folder: Path) -> Path:
    """Write a file for each table to FOLDER/events, and return this folder. No file is ever seen in part. UserError."""
    from spark.run_facts import experiment_of

    run = RecordedRun.of(folder, experiment_of(folder), folder.name)
    events = folder / "events"
    with users_mistake(ValueError), writing(events):
        events.mkdir(exist_ok=True)
        with ExitStack() as files:
            writers = {}
            for name, table in TABLES.items():
                file = files.enter_context(whole_file(events / f"{name}.parquet"))
                # `part` distinguishes the runs of one table; here a table has one run.
                schema = table.schema.remove(table.schema.get_field_index("part"))
                writers[name] = files.enter_context(pq.ParquetWriter(file, schema))
            for market in run.markets():
                for name, writer in writers.items():
                    writer.write_table(event_rows(name, market, **run.run_values).drop_columns("part"), ROWS)
    return events
