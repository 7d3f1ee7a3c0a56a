"""Lent calls keep the promises of the link that lends them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba import njit

from tests.transports.conftest import as_parameter, deadline_ns, joined, placed, serve_links_until
from transports.amqp.link import AmqpLink
from transports.base import Link, PeerGone
from transports.frames import FrameBatch
from transports.lending import NOTICE, Lent, lent_by

LENDERS = (
    "zeromq://{port}",
    "zeromq+ipc://{path}",
    "zeromq+inproc://{name}",
    "zeromq://{port}?topology=simplex",
    "tcp://{port}",
    "tcp://{port}?topology=simplex",
    "nng://{port}",
    "shm://{path}",
    "shm://{path}?pace=spin",
)
BROKERED = "amqp://{broker}"
THROUGH_A_SERVER = ("nats://{broker}", "redis://{broker}", "redis://{broker}?kind=stream")
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
    """A link used as by a component's turns: by its lent calls, and by Python if these ask for Python."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.settled = 0
        """How often the lent calls asked for Python."""

    def _borrow(self) -> Lent:
        lent = lent_by(self.link)
        assert lent is not None
        return lent

    def _settle(self, lent: Lent) -> None:
        if lent.numbers[NOTICE]:
            self.settled += 1
            lent.settle()

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        lent = self._borrow()
        batch.count = _receive(
            lent.receive, lent.numbers, lent.memory, batch.buffer, batch.offsets, before, batch.largest_frame
        )
        self._settle(lent)
        return batch.count - before

    def send(self, batch: FrameBatch, first: int) -> int:
        lent = lent_by(self.link)
        if lent is None:  # the link first has to write bytes that it took before
            return self.link.send(batch, first)
        taken = _send(lent.send, lent.numbers, lent.memory, batch.buffer, batch.offsets, first, batch.count)
        self._settle(lent)
        return int(taken)

    def sleep(self, until_ns: int) -> None:
        """Sleep. Call this only right after a `receive` without frames."""
        lent = self._borrow()
        _sleep(lent.sleep, lent.numbers, lent.memory, until_ns)
        self._settle(lent)

    def take(self, count: int) -> list[bytes]:
        """Receive this many frames, with sleeps in between; return them."""
        received = []
        batch = FrameBatch(64)
        end_ns = deadline_ns()
        while len(received) < count:
            assert time.monotonic_ns() < end_ns, f"{len(received)} of {count} frames came"
            batch.clear()
            if not self.receive(batch):
                self.sleep(end_ns)
            received += batch
        return received


@pytest.fixture(params=[*LENDERS, as_parameter(BROKERED)])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Borrower, Link]]:
    with joined(placed(request, tmp_path)) as (listener, connector):
        yield Borrower(listener), connector


def frames(count: int) -> list[bytes]:
    """Return numbered frames of different sizes."""
    return [number.to_bytes(4, "little") + bytes(number % 90) for number in range(count)]


def large_frames(count: int) -> list[bytes]:
    return [number.to_bytes(4, "little") + bytes(60_000) for number in range(count)]


def carried(borrower: Borrower, batch: FrameBatch, other: Link) -> list[bytes]:
    """Send the whole batch while the other end receives; return the frames that it received."""
    received = FrameBatch(1 << 14, 1 << 24)
    first = 0
    end_ns = deadline_ns()
    while first < batch.count or received.count < batch.count:
        assert time.monotonic_ns() < end_ns
        if first < batch.count:
            first = borrower.send(batch, first)
        borrower.link.wait(0)  # a TCP stream goes on writing the bytes that it took
        if not other.receive(received):
            other.wait(time.monotonic_ns() + 1_000_000)
    return list(received)


def test_frames_arrive_whole_and_in_order_both_ways(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    assert theirs.send(FrameBatch.of(*frames(MANY)), 0) == MANY
    assert ours.take(MANY) == frames(MANY)
    assert carried(ours, FrameBatch.of(*frames(MANY)), theirs) == frames(MANY)


def test_frames_that_wait_for_room_in_a_batch_arrive_whole_and_in_order(ends: tuple[Borrower, Link]) -> None:
    """More come at once than the batch takes, large and small ones, the last one in part."""
    ours, theirs = ends
    sent = [frame for pair in zip(large_frames(90), frames(90), strict=True) for frame in pair]
    unsent = FrameBatch.of(*sent)
    first = 0
    received: list[bytes] = []
    batch = FrameBatch(64)
    end_ns = deadline_ns()
    while len(received) < len(sent):
        assert time.monotonic_ns() < end_ns, f"{len(received)} of {len(sent)} frames came"
        if first < unsent.count:
            first = theirs.send(unsent, first)
        theirs.wait(0)
        batch.clear()
        ours.receive(batch)
        received += batch
    assert received == sent


@pytest.fixture(params=[as_parameter(url) for url in THROUGH_A_SERVER])
def through_a_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Borrower, Link]]:
    with joined(placed(request, tmp_path)) as (listener, connector):
        serve_links_until(lambda: lent_by(listener) is not None, listener, connector)
        yield Borrower(listener), connector


def test_frames_through_a_server_that_wait_for_room_in_a_batch_arrive_whole_and_in_order(
    through_a_server: tuple[Borrower, Link],
) -> None:
    """More come at once than the batch takes, and more than the link's buffer."""
    ours, theirs = through_a_server
    sent = [frame for pair in zip(large_frames(90), frames(90), strict=True) for frame in pair]
    unsent = FrameBatch.of(*sent)
    first = 0
    received: list[bytes] = []
    batch = FrameBatch(64)
    end_ns = deadline_ns()
    while len(received) < len(sent):
        assert time.monotonic_ns() < end_ns, f"{len(received)} of {len(sent)} frames came"
        if first < unsent.count:
            first = theirs.send(unsent, first)
        theirs.wait(0)
        batch.clear()
        settled = ours.settled
        if lent_by(ours.link) is not None:
            ours.receive(batch)
        if ours.settled > settled or lent_by(ours.link) is None:
            ours.link.receive(batch)
        received += batch
    assert received == sent


def test_a_full_link_loses_no_frame(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    sent = large_frames(200)
    assert carried(ours, FrameBatch.of(*sent), theirs) == sent


def test_a_sleep_ends_in_time_and_when_a_frame_comes(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    batch = FrameBatch(16)
    while ours.receive(batch):
        pass
    until_ns = time.monotonic_ns() + 20_000_000
    for _ in range(100):
        ours.receive(batch)
        ours.sleep(until_ns)
        if time.monotonic_ns() >= until_ns:
            break
    assert time.monotonic_ns() >= until_ns, "a hundred sleeps ended early"
    theirs.send(FrameBatch.of(b"wake"), 0)
    assert ours.take(1) == [b"wake"]


@pytest.mark.parametrize("last_frames", [0, 3])
def test_python_learns_that_the_peer_left_after_its_last_frame(ends: tuple[Borrower, Link], last_frames: int) -> None:
    ours, theirs = ends
    if "inproc" in ours.link.url or "amqp" in ours.link.url:
        pytest.skip("neither libzmq for inproc nor a broker reports that a peer left")
    if last_frames:
        theirs.send(FrameBatch.of(*frames(last_frames)), 0)
    theirs.close()
    assert ours.take(last_frames) == frames(last_frames)
    with pytest.raises(PeerGone):
        _receive_nothing(ours)


def _receive_nothing(ours: Borrower) -> None:
    """Take turns without a frame, until the lent calls have asked for Python a hundred times."""
    batch = FrameBatch(16)
    end_ns = deadline_ns()
    while time.monotonic_ns() < end_ns and ours.settled < 100:
        assert not ours.receive(batch)
        ours.sleep(end_ns)
        assert not ours.link.receive(batch)


def test_python_handles_a_frame_that_is_too_long(ends: tuple[Borrower, Link]) -> None:
    ours, theirs = ends
    theirs.send(FrameBatch.of(bytes(300), b"next"), 0)
    batch = FrameBatch(16, 4096, largest_frame=200)
    end_ns = deadline_ns()
    gone: PeerGone | None = None
    try:
        while not batch.count and time.monotonic_ns() < end_ns:
            ours.receive(batch)
            if ours.settled:
                ours.link.receive(batch)
    except PeerGone as error:  # a TCP stream cannot go on after such a frame
        gone = error
    if gone is not None:
        assert "300" in str(gone)
    else:
        assert list(batch) == [b"next"]
        assert ours.link.junk == 1
    assert ours.settled


@pytest.fixture(params=[as_parameter(BROKERED)])
def over_a_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Borrower, AmqpLink]]:
    with joined(placed(request, tmp_path)) as (listener, _connector):
        assert isinstance(listener, AmqpLink)
        yield Borrower(listener), listener


def until_called(ours: Borrower, called: list[object]) -> int:
    """Take turns as a component does, until a callback has filled the list. Returns the number of turns."""
    batch = FrameBatch(16)
    end_ns = deadline_ns()
    turns = 0
    while not called:
        turns += 1
        assert time.monotonic_ns() < end_ns, "no callback of pika was called"
        settled = ours.settled
        if not ours.receive(batch):
            ours.sleep(end_ns)
        if ours.settled > settled:
            ours.link.receive(batch)
    return turns


def test_python_s_turns_serve_the_frames_of_pika(over_a_broker: tuple[Borrower, AmqpLink]) -> None:
    ours, link = over_a_broker
    called: list[object] = []
    link._session.channel.queue_declare("", exclusive=True, callback=called.append)
    link._loop.flush()
    until_called(ours, called)


def test_python_s_turns_serve_the_timers_of_pika(over_a_broker: tuple[Borrower, AmqpLink]) -> None:
    ours, link = over_a_broker
    called: list[object] = []
    link._loop.timers.call_later(0.01, lambda: called.append("timer"))
    assert until_called(ours, called) < 20, "sleeps end at the timer, but do not ask for Python"


def test_frames_published_by_lent_calls_are_counted(over_a_broker: tuple[Borrower, AmqpLink]) -> None:
    ours, link = over_a_broker
    before = link.facts()["published"]
    assert ours.send(FrameBatch.of(*frames(30)), 0) == 30
    assert link.facts()["published"] == before + 30


@pytest.mark.parametrize("delivery", ["acked", "confirmed"])
def test_a_link_with_acknowledged_messages_lends_no_calls(broker_place: str, delivery: str) -> None:
    with joined(f"amqp://{broker_place}?delivery={delivery}") as (listener, connector):
        assert lent_by(listener) is None
        assert lent_by(connector) is None
