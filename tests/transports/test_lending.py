"""Lent calls keep the promises of the link that lends them: a link by lent calls moves what a link moves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import njit

from tests.transports.conftest import as_parameter, deadline_ns, joined, placed
from transports.amqp.link import AmqpLink
from transports.base import Link, PeerGone
from transports.frames import FrameBatch
from transports.lending import NOTICE, lent_by

LENDERS = (
    "zeromq://{port}",
    "zeromq+ipc://{path}",
    "zeromq+inproc://{name}",
    "zeromq://{port}?topology=simplex",
    "tcp://{port}",
    "tcp://{port}?topology=simplex",
    "shm://{path}",
    "shm://{path}?pace=spin",
)
BROKERED = "amqp://{broker}"
MANY = 3_000


@njit
def _receive(receive, numbers, memory, buffer, offsets, count, largest):
    return receive(numbers, memory, buffer, offsets, count, largest)


@njit
def _send(send, numbers, memory, buffer, offsets, first, end):
    return send(numbers, memory, buffer, offsets, first, end)


@njit
def _sleep(sleep, numbers, memory, until_ns):
    sleep(numbers, memory, until_ns)


class Borrower:
    """A link used as a component's turn uses it: by its lent calls, and by Python where these ask for it."""

    def __init__(self, link: Link) -> None:
        self.link, self.settled = link, 0

    def _lent(self) -> tuple[Any, ...]:
        self.lent = lent_by(self.link)
        assert self.lent is not None
        return self.lent.numbers, self.lent.memory

    def _settle(self) -> None:
        if self.lent is not None and self.lent.numbers[NOTICE]:
            self.settled += 1
            self.lent.settle()

    def receive(self, batch: FrameBatch) -> int:
        before, own = batch.count, self._lent()
        batch.count = _receive(self.lent.receive, *own, batch.buffer, batch.offsets, before, batch.largest_frame)
        self._settle()
        return batch.count - before

    def send(self, batch: FrameBatch, first: int) -> int:
        if lent_by(self.link) is None:  # it has something to write first
            return self.link.send(batch, first)
        own = self._lent()
        taken = _send(self.lent.send, *own, batch.buffer, batch.offsets, first, batch.count)
        self._settle()
        return int(taken)

    def sleep(self, until_ns: int) -> None:
        """Only right after a `receive` that found nothing."""
        own = self._lent()
        _sleep(self.lent.sleep, *own, until_ns)
        self._settle()

    def take(self, count: int) -> list[bytes]:
        """The next frames, so many, awaited by `sleep`."""
        taken, batch, end_ns = [], FrameBatch(64), deadline_ns()
        while len(taken) < count:
            assert time.monotonic_ns() < end_ns, f"{len(taken)} of {count} frames came"
            batch.clear()
            if not self.receive(batch):
                self.sleep(end_ns)
            taken += batch
        return taken


@pytest.fixture(params=[*LENDERS, as_parameter(BROKERED)])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Borrower, Link]]:
    with joined(placed(request, tmp_path)) as (listener, connector):
        yield Borrower(listener), connector


def frames(count: int, size: int = 0) -> list[bytes]:
    return [number.to_bytes(4, "little") + bytes(size or number % 90) for number in range(count)]


def pushed(link: Link | Borrower, batch: FrameBatch, other: Link) -> list[bytes]:
    """Send all of the batch, while the other end reads; what it read."""
    read, first, end_ns = FrameBatch(1 << 14, 1 << 24), 0, deadline_ns()
    while first < batch.count or read.count < batch.count:
        assert time.monotonic_ns() < end_ns
        if first < batch.count:
            first = link.send(batch, first)
        if isinstance(link, Borrower):
            link.link.wait(0)  # a stream goes on with what it took
        other.receive(read) or other.wait(time.monotonic_ns() + 1_000_000)
    return list(read)


def test_frames_arrive_whole_and_in_order_both_ways(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    assert theirs.send(FrameBatch.of(*frames(MANY)), 0) == MANY
    assert ours.take(MANY) == frames(MANY)
    assert pushed(ours, FrameBatch.of(*frames(MANY)), theirs) == frames(MANY)


def test_a_full_link_takes_what_it_can_and_loses_nothing(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    large = frames(200, 60_000)
    assert pushed(ours, FrameBatch.of(*large), theirs) == large


def test_a_sleep_ends_in_time_and_when_a_frame_comes(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    batch = FrameBatch(16)
    while ours.receive(batch):
        pass
    began_ns = time.monotonic_ns()
    for _ in range(100):
        ours.receive(batch)
        ours.sleep(began_ns + 20_000_000)
        if time.monotonic_ns() >= began_ns + 20_000_000:
            break
    assert time.monotonic_ns() - began_ns >= 20_000_000
    theirs.send(FrameBatch.of(b"wake"), 0)
    assert ours.take(1) == [b"wake"]


@pytest.mark.parametrize("last", [0, 3])
def test_the_peer_s_leaving_comes_to_python_behind_its_last_frame(ends: tuple[Borrower, Link], last: int) -> None:
    ours, theirs = ends
    if "inproc" in ours.link.url or "amqp" in ours.link.url:
        pytest.skip("libzmq says nothing when an inproc peer leaves, nor does a broker; a session ends in band")
    if last:
        theirs.send(FrameBatch.of(*frames(last)), 0)
    theirs.close()
    assert ours.take(last) == frames(last)
    with pytest.raises(PeerGone):
        _look_for_more(ours)


def _look_for_more(ours: Borrower) -> None:
    batch, end_ns = FrameBatch(16), deadline_ns()
    while time.monotonic_ns() < end_ns and ours.settled < 100:
        assert not ours.receive(batch)
        ours.sleep(end_ns)
        assert not ours.link.receive(batch)


def test_a_frame_that_is_too_long_is_for_python(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    theirs.send(FrameBatch.of(bytes(300), b"next"), 0)
    batch, end_ns, gone = FrameBatch(16, 4096, largest_frame=200), deadline_ns(), ""
    try:
        while not batch.count and time.monotonic_ns() < end_ns:
            ours.receive(batch)
            if ours.settled:
                ours.link.receive(batch)
    except PeerGone as error:
        gone = str(error)
    assert "300" in gone or (list(batch), ours.link.junk) == ([b"next"], 1)
    assert ours.settled


@pytest.fixture(params=[as_parameter(BROKERED)])
def over_a_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Borrower, AmqpLink]]:
    with joined(placed(request, tmp_path)) as (listener, _connector):
        assert isinstance(listener, AmqpLink)
        yield Borrower(listener), listener


def until_called(ours: Borrower, called: list[object]) -> int:
    """Take turns as a component does, until a callback has noted something; how many turns."""
    batch, end_ns, turns = FrameBatch(16), deadline_ns(), 0
    while not called:
        turns += 1
        assert time.monotonic_ns() < end_ns, "pika was never asked"
        settled = ours.settled
        if not ours.receive(batch):
            ours.sleep(end_ns)
        if ours.settled > settled:
            ours.link.receive(batch)
    return turns


def test_pika_gets_its_frames(over_a_broker: tuple[Borrower, AmqpLink]) -> None:
    ours, link = over_a_broker
    called: list[object] = []
    link._session.channel.queue_declare("", exclusive=True, callback=called.append)
    link._loop.flush()
    until_called(ours, called)


def test_pika_gets_its_timers(over_a_broker: tuple[Borrower, AmqpLink]) -> None:
    ours, link = over_a_broker
    called: list[object] = []
    link._loop.timers.call_later(0.01, lambda: called.append("timer"))
    assert until_called(ours, called) < 20, "sleeps ended at the timer, and did not ask for Python"


def test_what_was_published_is_counted(over_a_broker: tuple[Borrower, AmqpLink]) -> None:
    ours, link = over_a_broker
    before = link.facts()["published"]
    assert ours.send(FrameBatch.of(*frames(30)), 0) == 30
    assert link.facts()["published"] == before + 30


@pytest.mark.parametrize("delivery", ["acked", "confirmed"])
def test_a_link_whose_messages_the_broker_is_asked_about_lends_nothing(broker_place: str, delivery: str) -> None:
    with joined(f"amqp://{broker_place}?delivery={delivery}") as ends:
        assert [lent_by(end) for end in ends] == [None, None]
