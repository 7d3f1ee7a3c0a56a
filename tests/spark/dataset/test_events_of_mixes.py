"""The tables of events of runs with mixes, several gateways and several engines, against the plain reference book."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from benchmarks.reference_book import ReferenceBook
from exchange.instances import answers_file, input_file
from exchange.instruments import engine_of
from exchange.market_ids import gateway_of, number_of
from exchange.messages import (
    ASK,
    BID,
    Cancelled,
    CancelRequest,
    InstrumentOrder,
    Message,
    Order,
    Quote,
    Rejection,
    ReplaceRequest,
    Trade,
    TypedOrder,
    decode_all,
)
from exchange.order_mix import KINDS
from exchange_simulation.experiments.pipeline.events import write_events
from exchange_simulation.launching.errors import UserError
from gateway.tape_records import KIND_OF_ORDER_TYPE
from matching_engine.reasons import REASONS
from spark.gold.views import statement_of
from tests.exchange_command import run_exchange_in_process

MIX = "limit=43,post=7,market=5,ioc=3,fok=2,cancel=30,replace=10"
SIDES = {ASK: "ask", BID: "bid"}
EVENTS = ("orders", "trades", "quotes")

Row = dict[str, Any]


@dataclass(frozen=True)
class MarketRun:
    """A recorded run of a mix, with its events."""

    folder: Path
    gateways: int
    engines: int


@pytest.fixture(scope="module", params=[(1, 1, 1), (3, 1, 1), (2, 5, 1), (1, 5, 2), (3, 5, 2)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MarketRun:
    gateways, instruments, engines = request.param
    words = ("--mix", MIX, "--price-model", "two-sided", "--rate", 100_000, "--orders", 6000, "--record", "--events")
    results = tmp_path_factory.mktemp("mixes")
    market = ("--gateways", gateways, "--instruments", instruments, "--engines", engines)
    finished = run_exchange_in_process(results, *words, *market, "--name", "run")
    assert finished.code == 0, finished.err
    return MarketRun(results / "run", gateways, engines)


def rows_of(folder: Path, table: str) -> list[Row]:
    rows: list[Row] = pq.read_table(folder / "events" / f"{table}.parquet").to_pylist()
    return rows


class PlainEvents:
    """The rows of events as the plain book has them, with the columns that do not depend on time.

    The rows of engine 1 come first, then those of engine 2.
    """

    def __init__(self, run: MarketRun) -> None:
        self.is_shared = run.gateways > 1 or run.engines > 1
        self.books: defaultdict[int, ReferenceBook] = defaultdict(self._new_book)
        """A book for each instrument."""
        self.instruments: dict[int, int] = {}
        """By order, its instrument."""
        self.orders: list[Row] = []
        self.trades: list[Row] = []
        self.quotes: list[tuple[int | None, int | None]] = []
        self.sides: dict[int, str] = {}
        streams = [input_file(engine) for engine in range(1, run.engines + 1)] if self.is_shared else ["orders.bin"]
        for stream in streams:
            for message in decode_all((run.folder / stream).read_bytes()):
                self._take(message)

    def _new_book(self) -> ReferenceBook:
        return ReferenceBook(with_ids=True, is_shared=self.is_shared)

    def _id(self, name: str, gateway_name: str, order_id: int) -> Row:
        if self.is_shared:
            return {name: number_of(order_id), gateway_name: gateway_of(order_id)}
        return {name: order_id, gateway_name: 1}

    def _take(self, message: Message) -> None:
        assert isinstance(message, Order | TypedOrder | InstrumentOrder | CancelRequest | ReplaceRequest)
        instrument: int | None = None
        if isinstance(message, InstrumentOrder):
            instrument = message.instrument
            self.instruments[message.id] = instrument
            message = TypedOrder(message.id, message.side, message.price, message.volume, message.order_type)
        named = message.order_id if isinstance(message, CancelRequest | ReplaceRequest) else None
        if named is not None:
            instrument = self.instruments.get(named)
        book = self.books[instrument or 0]
        resting = None if named is None else book.orders.by_id.get(named)
        before = resting.volume if resting else None
        if isinstance(message, Order | TypedOrder):
            self.sides[message.id] = SIDES[message.side]
        entering = named if isinstance(message, ReplaceRequest) else message.id
        answers = book.handle(message)
        reasons = [REASONS[answer.reason] for answer in answers if isinstance(answer, Rejection)]
        cancelled = [answer.volume for answer in answers if isinstance(answer, Cancelled)]
        if isinstance(message, ReplaceRequest) and not reasons:
            cancelled = [before]
        self.orders.append(
            {
                **self._id("id", "gateway", message.id),
                "instrument": 1 if instrument is None else instrument,
                "kind": kind_of(message),
                "order_id": None if named is None else self._id("id", "gateway", named)["id"],
                "side": self.sides[message.id if named is None else named],
                "price": getattr(message, "price", 0) or None,
                "volume": getattr(message, "volume", None),
                "reject_reason": reasons[0] if reasons else None,
                "cancelled_volume": cancelled[0] if cancelled else None,
            }
        )
        for answer in answers:
            if isinstance(answer, Quote):
                self.quotes.append((answer.bid or None, answer.ask if answer.ask <= 999 else None))
            if isinstance(answer, Trade) and answer.id != entering:
                assert entering is not None
                self.trades.append(
                    {
                        "price": answer.price,
                        "volume": answer.volume,
                        "aggressor": self.sides[entering],
                        **self._id("resting_id", "resting_gateway", answer.id),
                        **self._id("incoming_id", "incoming_gateway", entering),
                    }
                )


def kind_of(message: Message) -> str:
    if isinstance(message, CancelRequest):
        return "cancel"
    if isinstance(message, ReplaceRequest):
        return "replace"
    return KINDS[KIND_OF_ORDER_TYPE[message.order_type]] if isinstance(message, TypedOrder) else "limit"


def test_messages_of_every_kind_and_their_trades_are_those_of_the_plain_book(run: MarketRun) -> None:
    expected = PlainEvents(run)
    orders = rows_of(run.folder, "orders")
    assert [{name: row[name] for name in expected.orders[0]} for row in orders] == expected.orders
    trades = rows_of(run.folder, "trades")
    assert [{name: row[name] for name in expected.trades[0]} for row in trades] == expected.trades
    assert [(row["bid"], row["ask"]) for row in rows_of(run.folder, "quotes")] == expected.quotes
    assert {row["kind"] for row in orders} == set(KINDS)
    assert {row["gateway"] for row in orders} == set(range(1, run.gateways + 1))
    assert {"unknown order", "would trade"}.issubset({row["reject_reason"] for row in orders})


def test_times_of_an_engine_never_go_back(run: MarketRun) -> None:
    for table in EVENTS:
        times_of_engines: defaultdict[int, list[int]] = defaultdict(list)
        for row in rows_of(run.folder, table):
            times_of_engines[engine_of(row["instrument"], run.engines)].append(row["time_ns"])
        assert len(times_of_engines) == run.engines
        for times in times_of_engines.values():
            assert times == sorted(times)
            assert times[-1] > 0


def test_sequence_counts_the_events_of_each_engine(run: MarketRun) -> None:
    sequences: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows_of(run.folder, "orders"):
        sequences[engine_of(row["instrument"], run.engines)].append(row["sequence"])
    assert len(sequences) == run.engines
    for sequence in sequences.values():
        assert sequence == list(range(1, len(sequence) + 1))


def test_depth_after_cancels_and_replaces_is_that_of_the_plain_book(run: MarketRun) -> None:
    """DuckDB takes the statements of both views."""
    depths = []
    for _, book in sorted(PlainEvents(run).books.items()):
        depths.append(tuple(sum(order.volume for order in book.resting(side)) for side in (BID, ASK)))
    base = duckdb.connect()
    for table in EVENTS:
        base.sql(f"create view {table} as select * from '{run.folder}/events/{table}.parquet'")
    stats = base.sql(f"select bid_depth, ask_depth from ({statement_of('market_stats', EVENTS)}) order by instrument")
    assert stats.fetchall() == depths
    bars = statement_of("bars_by_time", EVENTS).replace(":every_ns", "10_000_000")
    last_bars = base.sql(
        f"select max_by(bid_depth, start_s), max_by(ask_depth, start_s) from ({bars}) "
        "group by instrument order by instrument"
    )
    assert last_bars.fetchall() == depths


def test_a_changed_answer_of_any_engine_to_any_gateway_is_refused(run: MarketRun, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run.folder, tmp_path / "copy"))
    last = copy / answers_file(run.gateways, run.engines)
    answers = bytearray(last.read_bytes())
    answers[-1] ^= 1
    last.write_bytes(answers)
    with pytest.raises(UserError, match="not those of the matching engine"):
        write_events(copy)


def test_every_reason_of_the_engine_has_a_word() -> None:
    """docs/matching.md lists the reasons by number."""
    _, _, section = Path("docs/matching.md").read_text().partition("Reasons by number: ")
    sentence, _, _ = section.partition(".\n")
    assert [int(number) for number in re.findall(r"(?:^|,\s)(\d+) ", sentence)] == sorted(REASONS)
