"""The market events of a recorded run: orders, trades, confirmations and quotes, as typed columns.

    streams of orders ── matched again, a block at a time ──▶ the answers to each message ─┬─▶ Arrow rows of each event
    streams of answers ── must be equal to those answers ──────────────────────────────────┘

The time of an answer is the due time of the message that caused it, in ns since the gateway's first order was due.
Ingest puts the rows into the tables of many runs; `exchange run --events` writes those of its run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from exchange.instances import MAX_PAIRS, orders_file
from exchange.measurements import NS_PER_S
from exchange.messages import INCOMING_TYPES, sizes_by_code
from exchange.record_kinds import RunRecord
from exchange.records import TRAFFIC
from exchange.words import printable
from exchange_simulation.experiments.events.order_history import OrderHistory
from exchange_simulation.experiments.events.order_messages import messages_in
from exchange_simulation.experiments.events.tables import SCHEMAS, TABLES, Bytes, Market, event_rows
from exchange_simulation.experiments.pipeline.engine_streams import EngineStreams
from exchange_simulation.launching.errors import users_mistake, writing
from exchange_simulation.launching.files import whole_file
from exchange_simulation.launching.record.reading import read_record
from matching_engine.encoding import SMALLEST_ANSWER
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.tape import ANSWER_BYTES, offsets_of
from spark.dataset.ingesting import EventTables, RunSource
from spark.errors import RunUnreadableError
from spark.run_facts import experiment_of
from spark.tables.schemas import PAIR
from spark.tables.spool_by_arrow import SpoolTables, tables_of_spool
from spark.tables.table_writer import TableWriter
from transports.frames import LARGEST_FRAME, FrameBatch

BLOCK_ORDERS = 1 << 15
"""Messages of a block. A block is large, since an Arrow call takes as long for a few rows as for ten thousand."""
ORDER_SIZES = sizes_by_code(INCOMING_TYPES)
SETTINGS_OF_OLD_RUNS = {
    "policy": "price-time",
    "max_price": 999,
    "gateways": 1,
    "quotes_to": "all",
    "instruments": 1,
    "engines": 1,
    "opening": None,
}
"""Settings of the engine in runs whose record lacks them, since there was no such setting yet."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run with recorded streams: its folder, its names, the settings of its engine, and the starts of its clocks."""

    folder: Path
    experiment: str
    run: str
    policy: str
    max_price: int
    gateways: int = 1
    """The gateways at each engine."""
    engines: int = 1
    """The engines among which the instruments are shared out."""
    quotes_to: str = "all"
    instruments: int = 1
    """The instruments of all engines together."""
    starts_ns: Mapping[int, int]
    """By pair, the wall clock when the gateway's first order was due; a pair may be missing."""

    @classmethod
    def of(cls, folder: Path, experiment: str, run: str, spool: SpoolTables) -> RecordedRun:
        """Return the run in `folder`, with the engine's settings of its run.json."""
        settings = {**SETTINGS_OF_OLD_RUNS, **read_record(folder / "run.json", RunRecord)["settings"]}
        if settings["opening"] is not None:
            raise ValueError(
                f"{folder} has trades with orders of {settings['opening']}, from before the run: there are no tables "
                "of events of such a run"
            )
        return cls(
            folder=folder,
            experiment=experiment,
            run=run,
            policy=settings["policy"],
            max_price=settings["max_price"],
            gateways=settings["gateways"],
            engines=settings["engines"],
            quotes_to=settings["quotes_to"],
            instruments=settings["instruments"],
            starts_ns=starts_of_clocks(spool.kinds[TRAFFIC]),
        )

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield rows of each table, a block of messages at a time. ValueError if the streams are damaged.

        With several engines, all rows of an engine come before those of the next one.
        """
        for pair, streams in self._engines():
            values = {"experiment": self.experiment, "run": self.run, PAIR: pair}
            for market in self._markets(pair, streams):
                for table in TABLES:
                    yield table, event_rows(table, market, **values)

    def _markets(self, pair: int, streams: Callable[[], EngineStreams]) -> Iterator[Market]:
        """Yield the market of an engine, block by block. ValueError if its streams are damaged or disagree."""
        try:
            yield from self._matched_again(pair, streams())
        except (ValueError, OSError) as error:
            raise ValueError(f"the streams in {self.folder} give no events: {error}") from None

    def _engines(self) -> Iterator[tuple[int, Callable[[], EngineStreams]]]:
        """Yield the pair of each engine, and a function that reads the engine's streams. A market is one pair.

        The streams are read later, in `_markets`, which reports the damage of streams that cannot be read.
        """
        is_market = self.gateways > 1 or self.engines > 1
        if is_market:
            gets_quotes = self.quotes_to == "all"
            for engine in range(1, self.engines + 1):
                yield 1, partial(EngineStreams.of_market, self.folder, self.gateways, engine, gets_quotes=gets_quotes)
            return
        for pair in range(1, MAX_PAIRS + 1):
            if (self.folder / orders_file(pair)).exists():
                yield pair, partial(EngineStreams.of_pair, self.folder, pair)

    def _matched_again(self, pair: int, streams: EngineStreams) -> Iterator[Market]:
        """Match the messages once more; yield each block with its answers, which must be the recorded ones.

        ValueError if the answers are not those of the matching engine.
        """
        has_several = self.instruments > 1
        book = OrderBook(
            self.max_price,
            self.policy,
            with_ids=streams.has_requests,
            instruments=self.instruments if has_several else None,
        )
        # Each message is a frame. With packing, which is any number above 1, the engine puts all answers to a frame
        # into one frame.
        engine = MatchingEngine(book, packing=2, is_shared=streams.is_shared)
        frames = FrameBatch(ANSWER_BYTES // SMALLEST_ANSWER, ANSWER_BYTES)
        history = OrderHistory(streams.counts, is_shared=streams.is_shared)
        messages_before = 0
        answers_before = 0
        for batch in blocks_of(streams.messages):
            taken = 0
            stop = HandleStop.ROOM
            while stop is not HandleStop.DONE:
                frames.clear()
                end, stop = engine.handle(batch, frames, taken)
                if stop is HandleStop.FOREIGN:
                    raise ValueError(f"message {messages_before + end - taken + 1} is none that this engine takes")
                answers = frames.span(0, frames.count)
                ends = frames.offsets[1 : frames.count + 1]
                streams.check_answers(answers)
                messages = messages_in(batch.buffer, batch.offsets[taken:end])
                due_ns = streams.due_times(history.places_of(messages.id))
                messages, cancelled = history.follow(messages, answers, ends)
                market = Market(
                    instrument=None if has_several else pair,
                    messages=messages,
                    due_ns=due_ns,
                    answers=answers,
                    ends=ends,
                    max_price=self.max_price,
                    cancelled=cancelled,
                    gateway=None if streams.is_shared else pair,
                    is_shared=streams.is_shared,
                    messages_before=messages_before,
                    answers_before=answers_before,
                    start_ns=self.starts_ns.get(pair),
                )
                yield market
                messages_before += end - taken
                answers_before += len(market.starts)
                taken = end
        streams.check_ends()


def blocks_of(messages: Bytes) -> Iterator[FrameBatch]:
    """Yield the messages as batches, a frame a message, which share their memory. ValueError if one is not whole."""
    at = 0
    longest_block = BLOCK_ORDERS * int(ORDER_SIZES.max())
    while at < len(messages):
        offsets = offsets_of(messages[at : at + longest_block], ORDER_SIZES)[: BLOCK_ORDERS + 1]
        if len(offsets) == 1:
            raise ValueError(f"it has no message at offset {at}")
        batch = FrameBatch(1, LARGEST_FRAME)  # its own memory is replaced by the stream's
        batch.buffer = messages[at : at + offsets[-1]]
        batch.offsets = offsets
        batch.count = len(offsets) - 1
        yield batch
        at += int(offsets[-1])


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
    """Write a file for each table to FOLDER/events, and return this folder. No file is ever seen in part.

    UserError if the streams are damaged or the folder cannot be written.
    """
    events = folder / "events"
    with users_mistake(ValueError), writing(events):
        run = RecordedRun.of(folder, experiment_of(folder), folder.name, tables_of_spool(folder / "spool"))
        events.mkdir(exist_ok=True)
        with ExitStack() as files:
            writers = {}
            for name, schema in SCHEMAS.items():
                file = files.enter_context(whole_file(events / f"{name}.parquet"))
                writers[name] = files.enter_context(TableWriter(file, schema))
            for name, rows in run.rows():
                writers[name].add(rows)
    return events
