"""Imports of market data: the tape has the file's trades and its book at the end; what it cannot say is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reference_book import ReferenceBook
from exchange.messages import (
    ASK,
    BID,
    IMMEDIATE_OR_CANCEL,
    CancelRequest,
    Message,
    Order,
    ReplaceRequest,
    Trade,
    TypedOrder,
    decode_all,
)
from exchange.order_mix import OrderMix
from exchange_simulation.experiments.tapes import conversion, importing
from gateway.mixed_orders import MixedOrders
from tests.decoders.damage import damaged
from tests.exchange_command import exchange_in_process
from tests.exchange_simulation.experiments.tapes.market_files import (
    OTHER_STOCK,
    STOCK,
    UNITS_A_TICK,
    Event,
    events_of,
    itch,
    lobster,
)

MIX = "limit=60,post=5,market=3,ioc=3,fok=4,cancel=15,replace=10"
PRICES = (450, 549)
ITCH_WORDS = ("--format", "itch50", "--stock", STOCK)
LOBSTER_WORDS = ("--format", "lobster")


def market_of(seed: int, messages: int) -> list[Message]:
    return list(decode_all(MixedOrders(OrderMix.parse(MIX), seed, PRICES, "two-sided").records(1, messages)))


def imported(folder: Path, content: bytes, *words: str) -> dict[str, Any]:
    """Import the content; returns the record. The tape is tape.bin in the folder."""
    source = folder / "source"
    source.write_bytes(content)
    outcome = exchange_in_process("tape", "import", source, *words, "--output", folder / "tape.bin", "--json")
    assert outcome.code == 0, outcome.err
    return outcome.record


def messages_in(folder: Path) -> list[Message]:
    return list(decode_all((folder / "tape.bin").read_bytes()))


def executions_by(book: ReferenceBook, messages: list[Message]) -> list[tuple[int, int]]:
    """Return price and volume of each trade of a resting order, in order."""
    trades = []
    for message in messages:
        incoming_id = message.order_id if isinstance(message, ReplaceRequest) else message.id
        for answer in book.handle(message):
            if isinstance(answer, Trade) and answer.id != incoming_id:
                trades.append((answer.price, answer.volume))
    return trades


def volumes(book: ReferenceBook, side: int) -> list[tuple[int, int]]:
    return [(order.price, order.volume) for order in book.resting(side)]


@pytest.mark.parametrize("form", ["itch50", "lobster"])
@given(
    seed=st.integers(0, 2**32), chunk_bytes=st.sampled_from([64, 1000, 1 << 23]), capacity=st.sampled_from([2, 1 << 12])
)
def test_the_tape_of_a_market_has_its_trades_and_its_book(
    form: str, seed: int, chunk_bytes: int, capacity: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("market")
    market = ReferenceBook(with_ids=True)
    events = list(events_of(market_of(seed, 300), market, with_replaces=form == "itch50"))
    content = itch(events) if form == "itch50" else lobster(events).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "CHUNK_BYTES", chunk_bytes)
        patch.setattr(conversion, "FIRST_CAPACITY", capacity)
        record = imported(folder, content, *(ITCH_WORDS if form == "itch50" else LOBSTER_WORDS))
    tape = messages_in(folder)
    assert [message.id for message in tape] == list(range(1, len(tape) + 1))
    assert record["messages"] == len(tape) == len(events)
    copy = ReferenceBook(with_ids=True)
    trades = [(event.price // UNITS_A_TICK, event.shares) for event in events if event.kind == "execute"]
    assert executions_by(copy, tape) == trades
    for side in (ASK, BID):
        assert volumes(copy, side) == volumes(market, side)
    due_ns = np.fromfile(folder / "tape.due", "<u8")
    assert (np.diff(due_ns.astype(np.int64)) == 1_000).all()


EVENTS = (
    Event("add", 11, BID, 50_000, 10),
    Event("attributed", 12, ASK, 50_200, 20),
    Event("reduce", 11, shares=4),
    Event("execute", 12, shares=5),
    Event("execute at", 12, price=50_150, shares=5),
    Event("replace", 12, new_number=13, price=50_300, shares=8),
    Event("execute", 13, shares=8),
    Event("execute", 11, shares=2),
    Event("reduce", 11, shares=4),
)


def test_each_message_of_itch_becomes_its_record(tmp_path: Path) -> None:
    record = imported(tmp_path, itch(EVENTS), *ITCH_WORDS)
    assert messages_in(tmp_path) == [
        Order(1, BID, 500, 10),
        Order(2, ASK, 502, 20),
        ReplaceRequest(3, 1, 500, 6),
        TypedOrder(4, BID, 502, 5, IMMEDIATE_OR_CANCEL),
        TypedOrder(5, BID, 502, 5, IMMEDIATE_OR_CANCEL),
        ReplaceRequest(6, 2, 503, 8),
        TypedOrder(7, BID, 503, 8, IMMEDIATE_OR_CANCEL),
        TypedOrder(8, ASK, 500, 2, IMMEDIATE_OR_CANCEL),
        CancelRequest(9, 1),
    ]
    assert {name: record[name] for name in ("orders", "executions", "cancels", "replaces")} == {
        "orders": 2,
        "executions": 4,
        "cancels": 1,
        "replaces": 2,
    }
    assert record["left_out"] == {"stock directory entries": 1}
    assert (record["lowest_price"], record["highest_price"]) == (500, 503)


def test_what_a_tape_cannot_say_is_counted_and_named(tmp_path: Path) -> None:
    events = (
        Event("add", 1, BID, 50_000, 10),
        Event("add", 1, BID, 50_000, 10),
        Event("add", 2, BID, 50_050, 10),
        Event("add", 3, BID, 6_553_500, 10),
        Event("add", 4, BID, 0, 10),
        Event("add", 5, BID, 50_000, 65_536),
        Event("add", 6, BID, 50_000, 0),
        Event("delete", 5),
        Event("execute", 99, shares=1),
        Event("hidden", 0, BID, 50_000, 10),
        Event("replace", 1, new_number=7, price=50_010, shares=3),
    )
    other = itch([Event("add", 8, BID, 40_000, 1), Event("delete", 8)], OTHER_STOCK)
    record = imported(tmp_path, other + itch(events), *ITCH_WORDS)
    assert record["left_out"] == {
        "messages of other stocks, or of none": 3,
        "stock directory entries": 1,
        "trades of hidden orders": 1,
        "orders at a price between two ticks": 2,
        "orders at a price beyond 1 to 65,534 ticks": 2,
        "orders of more than 65,535 lots, or of none": 2,
        "events of orders that are not on the tape": 2,
        "orders whose number another resting order has": 1,
    }
    assert messages_in(tmp_path) == [Order(1, BID, 500, 10), CancelRequest(2, 1)]


def test_a_time_that_goes_back_is_set_to_the_time_before(tmp_path: Path) -> None:
    content = itch([Event("add", 1, BID, 50_000, 1)], first_ns=5_000) + itch([Event("delete", 1)], first_ns=4_000)
    record = imported(tmp_path, content, *ITCH_WORDS)
    assert record["left_out"]["times before the time of an earlier event, which were set to that time"] == 1
    assert np.fromfile(tmp_path / "tape.due", "<u8").tolist() == [5_000, 5_000]


def test_lines_of_lobster_may_have_another_form(tmp_path: Path) -> None:
    content = (
        b"34200.5,1,7,10,50000,1\r\n34200,7,0,0,-1,-1\r\n34201.1234567891,5,0,3,50000,1,null\n34202,3,7,10,50000,1"
    )
    record = imported(tmp_path, content, *LOBSTER_WORDS)
    assert messages_in(tmp_path) == [Order(1, BID, 500, 10), CancelRequest(2, 1)]
    assert record["left_out"] == {"executions of hidden orders": 1, "trading halts": 1}
    assert np.fromfile(tmp_path / "tape.due", "<u8").tolist() == [34_200_500_000_000, 34_202_000_000_000]


def test_a_tick_is_a_step_of_prices(tmp_path: Path) -> None:
    imported(tmp_path, itch([Event("add", 1, BID, 50_000, 1)]), *ITCH_WORDS, "--tick", "0.5")
    assert messages_in(tmp_path) == [Order(1, BID, 10, 1)]


WHOLE = itch(EVENTS)
GOOD_LINE = b"34200.5,1,7,10,50000,1\n"


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (GOOD_LINE + b"34200.6,1,7\n", LOBSTER_WORDS, "line 2 is no event of LOBSTER, since its order number is wrong"),
        (b"time,type,id\n", LOBSTER_WORDS, "line 1 is no event of LOBSTER, since its time is wrong: 'time,type,id'"),
        (GOOD_LINE + b"34200.6,8,7,1,50000,1\n", LOBSTER_WORDS, "line 2 is no event of LOBSTER, since its event type"),
        (GOOD_LINE + b"34200.6,1,8,-1,50000,1\n", LOBSTER_WORDS, "its size is wrong"),
        (GOOD_LINE + b"34200.6,1,8,1,50000,2\n", LOBSTER_WORDS, "its direction is wrong"),
        (GOOD_LINE + b"34200.6,1,8,1,50000,1\rtext\n", LOBSTER_WORDS, "its direction is wrong"),
        (GOOD_LINE + b"34200.6,1,8,1,50000,1 text\n", LOBSTER_WORDS, "its direction is wrong"),
        (GOOD_LINE + b"34200.6,1,8,1,9999999999999999999,1\n", LOBSTER_WORDS, "its price is wrong"),
        (b"", LOBSTER_WORDS, "has no order among 0 events"),
        (WHOLE[:-1], ITCH_WORDS, f"truncated: 22 of 23 bytes of a message at offset {len(WHOLE) - 25}"),
        (WHOLE[:-24], ITCH_WORDS, f"truncated: a message of 1 bytes at offset {len(WHOLE) - 25}"),
        (b"\0\x0cZ" + bytes(20), ITCH_WORDS, "no message of ITCH 5.0 at offset 0: no message has the type 'Z'"),
        (
            WHOLE + b"\0\x0cA" + bytes(40),
            ITCH_WORDS,
            f"at offset {len(WHOLE)}: its length is 12, where messages of type",
        ),
        (itch(EVENTS, OTHER_STOCK), ITCH_WORDS, f"has no order of {STOCK} among 10 events"),
    ],
)
def test_a_file_of_another_form_is_refused_and_leaves_no_tape(
    tmp_path: Path, content: bytes, words: tuple[str, ...], message: str
) -> None:
    source = tmp_path / "source"
    source.write_bytes(content)
    outcome = exchange_in_process("tape", "import", source, *words, "--output", tmp_path / "tape.bin")
    assert outcome.code == 2
    assert message in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "itch50"), "give one with --stock"),
        (("--format", "itch50", "--stock", "TOOLONGNAME"), "'TOOLONGNAME' is no stock"),
        ((*LOBSTER_WORDS, "--stock", "AAPL"), "leave --stock out"),
        ((*LOBSTER_WORDS, "--tick", "0"), "--tick is 0; allowed is 0.0001 to 1000"),
        ((*LOBSTER_WORDS, "--tick", "cent"), "--tick is cent"),
        ((*LOBSTER_WORDS, "--tick", "1e999999"), "--tick is 1e999999; allowed is 0.0001 to 1000"),
        ((*LOBSTER_WORDS, "--tick", "sNaN"), "--tick is sNaN; allowed is 0.0001 to 1000"),
        (("--format", "csv"), "'csv' is not one of"),
    ],
)
def test_words_that_say_nothing_are_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    source = tmp_path / "source"
    source.write_bytes(GOOD_LINE)
    outcome = exchange_in_process("tape", "import", source, *words, "--output", tmp_path / "tape.bin")
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize(
    ("content", "words"),
    [(WHOLE, ITCH_WORDS), (lobster(EVENTS[:1] * 3).encode(), LOBSTER_WORDS)],
    ids=["itch", "lobster"],
)
@given(data=st.data())
def test_a_damaged_file_is_imported_or_refused(
    content: bytes, words: tuple[str, ...], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    source = folder / "source"
    source.write_bytes(data.draw(damaged(content)))
    outcome = exchange_in_process("tape", "import", source, *words, "--output", folder / "tape.bin")
    if outcome.code == 0:
        assert exchange_in_process("match", folder / "tape.bin", "--ids", "--max-price", 65534).code == 0
        assert (folder / "tape.due").stat().st_size == 8 * len(messages_in(folder))
    else:
        assert outcome.code == 2
        assert outcome.err.startswith(("Error", "Usage"))


def test_an_imported_day_is_replayed(tmp_path: Path) -> None:
    imported(tmp_path, itch(list(events_of(market_of(3, 400), ReferenceBook(with_ids=True), True))), *ITCH_WORDS)
    words = ("run", "--transport", "memory", "--tape", tmp_path / "tape.bin", "--speed", "0.01", "--no-page", "--json")
    run = exchange_in_process(*words, "--results", tmp_path / "results")
    assert run.code == 0, run.err
    matched = exchange_in_process("match", tmp_path / "tape.bin", "--ids", "--json").record
    assert run.record["checksums"] == matched["checksums"]


def test_a_source_that_fails_while_it_is_read_is_named(tmp_path: Path) -> None:
    unreadable = Path("/proc/self/mem")  # it can be opened, and its first page cannot be read
    words = ("tape", "import", unreadable, *LOBSTER_WORDS, "--output", tmp_path / "tape.bin")
    outcome = exchange_in_process(*words)
    assert outcome.code == 2
    assert outcome.err == "Error: cannot read /proc/self/mem: Input/output error\n"
    assert list(tmp_path.iterdir()) == []
