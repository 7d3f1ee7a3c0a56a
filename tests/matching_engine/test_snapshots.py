"""Snapshots: an engine goes on from a snapshot as if it had matched every order, and ignores one that does not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.messages import ASK, BID, Message, Order, Resume, encode
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.follower import Follower
from matching_engine.recovering.journal import InputJournal, JournalRefused
from matching_engine.recovering.journal_records import snapshot_path
from matching_engine.recovering.snapshots import write_snapshot
from tests.matching_engine.order_streams import TinyBook, settings_of_books, streams

IDENTITY = {"run": "first", "pair": 1}
ORDERS = [Order(number, 1 + number % 2, 490 + number % 20, 1 + number % 7) for number in range(1, 101)]


def append(journal: InputJournal, messages: list[Message]) -> None:
    for message in messages:
        journal.append(np.frombuffer(bytearray(encode(message)), np.uint8))


def followed(path: Path, book: OrderBook) -> Follower:
    """Return a follower that has matched the journal from its snapshot to its end."""
    follower = Follower(path, MatchingEngine(book))
    follower.follow()
    return follower


def with_snapshot(path: Path, book: OrderBook, before: list[Message], after: list[Message]) -> InputJournal:
    """Return a journal of these messages, with a snapshot between the two lists."""
    journal = InputJournal(path, IDENTITY, sync="none")
    journal.begin(Resume(1, 0, 0))
    append(journal, before)
    follower = followed(path, book)
    write_snapshot(journal, follower.engine, follower.sums)
    append(journal, after)
    return journal


def state(follower: Follower) -> dict[str, object]:
    """Return all facts in which two followers of one journal must agree."""
    book = follower.engine.book
    return {
        "counts": follower.engine.counts,
        "asks": book.resting(ASK),
        "bids": book.resting(BID),
        "checksum of orders": follower.sums.orders.hex,
        "checksum of answers": follower.sums.answers.hex,
        "orders": follower.reader.orders,
        "session": follower.reader.session,
    }


@given(data=st.data())
def test_a_snapshot_leads_to_the_same_state_as_all_orders(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rules = data.draw(settings_of_books())
    path = tmp_path_factory.mktemp("snapshots") / "j.journal"
    messages = data.draw(streams(rules["max_price"]))
    first = data.draw(st.integers(0, len(messages)))
    with_snapshot(path, TinyBook(**rules), messages[:first], messages[first:]).abandon()
    from_snapshot = Follower(path, MatchingEngine(TinyBook(**rules)))
    assert from_snapshot.reader.orders == first
    from_snapshot.follow()
    snapshot_path(path).unlink()
    assert state(from_snapshot) == state(followed(path, TinyBook(**rules)))


def with_bit_flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("damage", ["cut", "flipped", "longer", "empty", "of another version"])
def test_a_damaged_snapshot_is_ignored(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, []).abandon()
    good = snapshot_path(path).read_bytes()
    places = [*range(48), 150, len(good) - 1]  # the head has 48 bytes
    damages = {
        "cut": [good[:-1], good[:48], good[:47], good[:15]],
        "flipped": [with_bit_flipped(good, place) for place in places],
        "longer": [good + b"\0"],
        "empty": [b""],
        "of another version": [b"EXSNAP01" + good[8:]],
    }
    for damaged in damages[damage]:
        snapshot_path(path).write_bytes(damaged)
        assert Follower(path, MatchingEngine(OrderBook(999))).reader.orders == 0
    snapshot_path(path).write_bytes(good)
    assert Follower(path, MatchingEngine(OrderBook(999))).reader.orders == len(ORDERS)


def test_a_snapshot_of_another_journal_is_ignored(tmp_path: Path) -> None:
    journal = tmp_path / "first.journal"
    with_snapshot(journal, OrderBook(999), ORDERS, []).abandon()
    snapshot = snapshot_path(journal).read_bytes()

    with_other_orders = tmp_path / "other orders.journal"
    other_orders = [*ORDERS[:-1], ORDERS[-1]._replace(price=1)]
    with_snapshot(with_other_orders, OrderBook(999), other_orders, []).abandon()

    of_other_run = tmp_path / "other run.journal"  # the same orders after another run's head
    InputJournal(of_other_run, {**IDENTITY, "run": "third"}, sync="none").abandon()
    head_of_other_run = of_other_run.read_bytes()
    InputJournal(tmp_path / "empty.journal", IDENTITY, sync="none").abandon()
    head = (tmp_path / "empty.journal").read_bytes()
    of_other_run.write_bytes(head_of_other_run + journal.read_bytes()[len(head) :])

    for other_journal in (with_other_orders, of_other_run):
        snapshot_path(other_journal).write_bytes(snapshot)
        follower = Follower(other_journal, MatchingEngine(OrderBook(999)))
        assert follower.reader.orders == 0
        follower.follow()
        assert follower.reader.orders == len(ORDERS)


def test_a_snapshot_of_a_book_of_another_size_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999, capacity=200), ORDERS, []).abandon()
    for book in (OrderBook(999, capacity=201), OrderBook(65534)):
        assert Follower(path, MatchingEngine(book)).reader.orders == 0


def test_a_snapshot_of_more_orders_than_its_journal_has_is_removed(tmp_path: Path) -> None:
    """A power failure may destroy the journal's end but not the snapshot."""
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, []).abandon()
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 26)
    follower = Follower(path, MatchingEngine(OrderBook(999)))
    assert follower.reader.orders == 0
    InputJournal(path, IDENTITY, reader=follower.reader, on_orders=follower.match).abandon()
    assert follower.reader.orders == len(ORDERS) - 1
    assert not snapshot_path(path).exists()


def test_a_new_journal_removes_the_previous_journal_s_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, []).abandon()
    path.unlink()
    InputJournal(path, IDENTITY).abandon()
    assert not snapshot_path(path).exists()


def test_damage_before_a_snapshot_is_found_in_a_full_read(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, ORDERS[:3]).abandon()
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    follower = Follower(path, MatchingEngine(OrderBook(999)))
    journal = InputJournal(path, IDENTITY, reader=follower.reader, on_orders=follower.match)
    assert journal.orders == 103
    assert follower.orders_in_snapshot == 100
    with pytest.raises(JournalRefused, match=r"damaged at offset \d+, behind order (\d+), .* with the \1 orders"):
        list(journal.batches())
    journal.abandon()


def test_a_failed_snapshot_leaves_the_previous_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    journal = with_snapshot(path, OrderBook(999), ORDERS, [])
    before = snapshot_path(path).read_bytes()
    follower = followed(path, OrderBook(999))
    snapshot_path(path).with_suffix(".unfinished").mkdir()
    with pytest.raises(IsADirectoryError, match="unfinished"):
        write_snapshot(journal, follower.engine, follower.sums)
    assert snapshot_path(path).read_bytes() == before
    journal.abandon()


def test_answers_before_a_snapshot_are_not_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, []).abandon()
    follower = followed(path, OrderBook(999))
    answers = follower.engine.counts.answers
    checksum = follower.sums.answers.value
    assert follower.answers_after(Resume(2, answers, checksum)) == []
    assert follower.answers_after(Resume(2, answers, checksum ^ 1)) is None
    assert follower.answers_after(Resume(2, answers - 1, checksum)) is None
    assert follower.answers_after(Resume(2, 0, 0)) is None


def test_only_its_owner_may_read_a_snapshot(tmp_path: Path) -> None:
    with_snapshot(tmp_path / "j.journal", OrderBook(999), [Order(1, ASK, 500, 1)], []).abandon()
    assert snapshot_path(tmp_path / "j.journal").stat().st_mode & 0o777 == 0o600
