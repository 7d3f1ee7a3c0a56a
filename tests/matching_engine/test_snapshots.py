"""Snapshots: an engine goes on from one as if it had matched every order; one that does not fit is passed over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.messages import ASK, Message, Order, Resume, encode
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


def matched(path: Path, book: OrderBook) -> Follower:
    """What follows the journal from its snapshot on, up to its end."""
    follower = Follower(path, MatchingEngine(book))
    follower.follow()
    return follower


def with_snapshot(path: Path, book: OrderBook, before: list[Message], behind: list[Message]) -> InputJournal:
    """A journal with a snapshot between these messages."""
    journal = InputJournal(path, IDENTITY, sync="none")
    journal.begin(Resume(1, 0, 0))
    append(journal, before)
    follower = matched(path, book)
    write_snapshot(journal, follower.engine, follower.sums)
    append(journal, behind)
    return journal


def state(follower: Follower) -> tuple[object, ...]:
    engine, sums = follower.engine, follower.sums
    resting = [engine.book.resting(side) for side in (1, 2)]
    return engine.counts, resting, sums.orders.hex, sums.answers.hex, follower.reader.orders, follower.reader.session


@given(data=st.data())
def test_an_engine_goes_on_from_a_snapshot_as_from_all_orders(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rules, path = data.draw(settings_of_books()), tmp_path_factory.mktemp("snapshots") / "j.journal"
    messages = data.draw(streams(rules["max_price"]))
    first = data.draw(st.integers(0, len(messages)))
    with_snapshot(path, TinyBook(**rules), messages[:first], messages[first:]).abandon()
    begun = Follower(path, MatchingEngine(TinyBook(**rules)))
    assert begun.reader.orders == first
    begun.follow()
    snapshot_path(path).unlink()
    assert state(begun) == state(matched(path, TinyBook(**rules)))


@pytest.mark.parametrize("damage", ["cut", "flipped", "longer", "empty", "of another version"])
def test_a_damaged_snapshot_is_passed_over(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, []).abandon()
    good = snapshot_path(path).read_bytes()
    damages = {
        "cut": [good[:-1], good[:48], good[:47], good[:15]],
        "flipped": [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in (*range(48), 150, len(good) - 1)],
        "longer": [good + b"\0"],
        "empty": [b""],
        "of another version": [b"EXSNAP01" + good[8:]],
    }
    for bad in damages[damage]:
        snapshot_path(path).write_bytes(bad)
        assert Follower(path, MatchingEngine(OrderBook(999))).reader.orders == 0
    snapshot_path(path).write_bytes(good)
    assert Follower(path, MatchingEngine(OrderBook(999))).reader.orders == len(ORDERS)


def test_a_whole_snapshot_of_another_journal_is_passed_over(tmp_path: Path) -> None:
    ours, theirs, other_run = tmp_path / "ours.journal", tmp_path / "theirs.journal", tmp_path / "run.journal"
    with_snapshot(ours, OrderBook(999), ORDERS, []).abandon()
    with_snapshot(theirs, OrderBook(999), [*ORDERS[:-1], ORDERS[-1]._replace(price=1)], []).abandon()
    InputJournal(other_run, {**IDENTITY, "run": "third"}, sync="none").abandon()
    identity = other_run.read_bytes()
    InputJournal(tmp_path / "empty.journal", IDENTITY, sync="none").abandon()
    head = (tmp_path / "empty.journal").read_bytes()
    other_run.write_bytes(identity + ours.read_bytes()[len(head) :])
    for stranger in (theirs, other_run):
        snapshot_path(stranger).write_bytes(snapshot_path(ours).read_bytes())
        follower = Follower(stranger, MatchingEngine(OrderBook(999)))
        assert follower.reader.orders == 0
        follower.follow()
        assert follower.reader.orders == len(ORDERS)


def test_a_snapshot_of_a_book_with_other_room_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999, capacity=200), ORDERS, []).abandon()
    for book in (OrderBook(999, capacity=201), OrderBook(65534)):
        assert Follower(path, MatchingEngine(book)).reader.orders == 0


def test_a_snapshot_that_is_further_on_than_its_journal_is_removed(tmp_path: Path) -> None:
    """A power failure may take the journal's end, and leave the snapshot."""
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, []).abandon()
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 26)
    follower = Follower(path, MatchingEngine(OrderBook(999)))
    assert follower.reader.orders == 0
    InputJournal(path, IDENTITY, reader=follower.reader, on_orders=follower.match).abandon()
    assert follower.reader.orders == len(ORDERS) - 1
    assert not snapshot_path(path).exists()


def test_a_new_journal_has_no_snapshot_of_the_one_before(tmp_path: Path) -> None:
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
    assert (journal.orders, follower.orders_in_snapshot) == (103, 100)
    with pytest.raises(JournalRefused, match=r"damaged at offset \d+, behind order (\d+), .* with the \1 orders"):
        list(journal.batches())
    journal.abandon()


def test_a_snapshot_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    journal = with_snapshot(path, OrderBook(999), ORDERS, [])
    before, follower = snapshot_path(path).read_bytes(), matched(path, OrderBook(999))
    snapshot_path(path).with_suffix(".unfinished").mkdir()
    with pytest.raises(IsADirectoryError, match="unfinished"):
        write_snapshot(journal, follower.engine, follower.sums)
    assert snapshot_path(path).read_bytes() == before
    journal.abandon()


def test_the_answers_that_a_gateway_lacks_are_kept_behind_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "j.journal"
    with_snapshot(path, OrderBook(999), ORDERS, []).abandon()
    follower = matched(path, OrderBook(999))
    answers, checksum = follower.engine.counts.answers, follower.sums.answers.value
    assert follower.answers_after(Resume(2, answers, checksum)) == []
    assert follower.answers_after(Resume(2, answers, checksum ^ 1)) is None
    assert follower.answers_after(Resume(2, answers - 1, checksum)) is None
    assert follower.answers_after(Resume(2, 0, 0)) is None


def test_snapshots_are_for_their_owner_alone(tmp_path: Path) -> None:
    with_snapshot(tmp_path / "j.journal", OrderBook(999), [Order(1, ASK, 500, 1)], []).abandon()
    assert snapshot_path(tmp_path / "j.journal").stat().st_mode & 0o777 == 0o600
