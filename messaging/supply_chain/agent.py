"""An agent: a process that plays one or more locations; it handles what comes to them, and begins their interactions.

A message's head, little-endian; its body is a pattern that makes it as long as its row of table 2 says:

    u16 destination's number on the link · u8 message · u8 which of three sizes · u16 number of the queue's location,
    or of the topic · u16 sender · u16 initiator · u16 supplier whose turn it is · u32 sequence of this sender to this
    destination, from 0 · i64 when it was handed over · i64 when its interaction was due (monotonic clock, ns)
"""

from __future__ import annotations

import itertools
import struct
import time
from array import array
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np

from exchange.measurements import LogBuckets
from messaging.roles import LinkEnd, RoleResult
from messaging.session import OPEN_NS, TICK_NS, LooksIntoQueues, Session, WaitsBeside, await_subscribers
from messaging.supply_chain.chain import NUMBER_OF, Chain, Location, Times, size_number
from messaging.supply_chain.messages import INTERACTIONS, KILOBYTE, MESSAGES, Kind, Message, To, sizes_kb
from transports.base import Link, PeerGone, TransportError
from transports.frames import LARGEST_FRAME, FrameBatch
from transports.registry import listen

HEAD = struct.Struct("<HBBHHHHIqq")
START_IN_NS = 300_000_000
"""The clock starts so long after the last agent is at work."""
REPORT_EVERY_NS = 100_000_000
LOOK_AGAIN_S, RECONNECT_EVERY_S = 0.002, 0.1
BODY = bytes(number % 251 for number in range(1 << 17))


class Head(NamedTuple):
    route: int
    message: int
    size: int
    target: int
    sender: int
    initiator: int
    winner: int
    sequence: int
    handed_over_ns: int
    due_ns: int


def bytes_of(message: Message, size: int) -> int:
    return max(HEAD.size, round(sizes_kb(message)[size] * KILOBYTE))


@cache
def _bodies() -> list[list[bytes]]:
    return [[BODY[: bytes_of(message, size) - HEAD.size] for size in range(3)] for message in MESSAGES]


ANSWERS = [
    [NUMBER_OF[answer.name] for answer in MESSAGES if answer.after == message.name] for message in MESSAGES
]  # fmt: skip
"""By message: the messages that its receiver answers with."""
ROUTES = Mapping[tuple[int, int], tuple[int, int]]
"""(message, destination) to (link, number of the destination on that link)."""


@dataclass
class Counts:
    """One message, as one agent saw it: all of them, and those within the measured time."""

    sent: int = 0
    expected: int = 0
    """Deliveries that the messages sent are to make: one for each subscriber of a topic."""
    received: int = 0
    doubled: int = 0
    measured_sent: int = 0
    measured_received: int = 0
    measured_bytes: int = 0
    """Received."""
    delivery_ns: Any = field(default_factory=lambda: array("q"))
    """From handing over to receipt, of those received within the measured time."""
    since_due_ns: Any = field(default_factory=lambda: array("q"))
    """From the time at which the message's interaction was due."""


@dataclass(frozen=True)
class Agent:
    """A role's task. `start` is shared by all agents: the one that `opens` writes there when the clock starts."""

    chain: Chain
    locations: tuple[Location, ...]
    times: Times
    routes: ROUTES
    receives: tuple[int, ...]
    """Links that it receives from; it waits for all of them together."""
    start: mmap
    opens: bool = False
    publishes: tuple[int, ...] = ()
    """Links whose subscribers it waits for, which are `subscribers`."""
    subscribers: int = 0
    ends: tuple[LinkEnd, ...] = ()
    """The ends to open again once the broker has gone; empty if its end is the run's."""

    def __call__(self, session: Session) -> RoleResult:
        try:
            for link in self.publishes:
                await_subscribers(session.links[link], self.subscribers, time.monotonic_ns() + OPEN_NS)
            shift = _Shift(self, session, self._await_start(session))
            shift.work()
            return shift.result()
        except PeerGone as why:
            return RoleResult(stopped=str(why))

    def _await_start(self, session: Session) -> int:
        if self.opens:
            self.start[:8] = struct.pack("<q", time.monotonic_ns() + START_IN_NS)
        while not (start_ns := struct.unpack("<q", self.start[:8])[0]):
            if session.must_stop:
                return time.monotonic_ns()
            time.sleep(LOOK_AGAIN_S)
        return int(start_ns)


class _Shift:
    """An agent at work, from the common start to the end."""

    def __init__(self, agent: Agent, session: Session, start_ns: int) -> None:
        self._agent, self._chain, self._session = agent, agent.chain, session
        self._links = session.links
        self._start_ns = start_ns
        self._from_ns = start_ns + int(agent.times.warm_up_s * 1e9)
        self._until_ns = start_ns + int(agent.times.driven_s * 1e9)
        self._give_up_ns = self._until_ns + int(agent.times.drain_s * 1e9)
        self._counts: dict[int, Counts] = defaultdict(Counts)
        self._lag_ns = array("q")
        self._seen: dict[tuple[int, int, int], bytearray] = {}
        self._sequences: dict[tuple[int, int, int], int] = defaultdict(int)
        self._turns: dict[Location, int] = {location: location.number for location in agent.locations}
        self._out = [FrameBatch() for _ in self._links]
        self._gone = [0] * len(self._links)
        self._received = self._reported = self._next_due = self._look_ns = 0
        self._batch = FrameBatch(4096, 4 * LARGEST_FRAME)
        self._unconfirmed: list[deque[bytes]] = [deque() for _ in self._links]
        self._own = {kind: [each.number for each in agent.locations if each.kind is kind] for kind in Kind}
        self._drivers = _drivers(agent)
        self._begun = [0] * len(self._drivers)
        self._dues_ns, self._whose = _merged(agent, self._drivers, start_ns)

    def work(self) -> None:
        """Begin interactions when they are due, and handle what comes, until the launcher says that all has come."""
        _wait_together(self._receiving)
        while not self._is_over(now_ns := time.monotonic_ns()):
            try:
                self._turn(now_ns)
            except PeerGone:
                if not self._agent.ends:
                    raise
                self._reconnect()
        self._take_all()

    def _turn(self, now_ns: int) -> None:
        self._begin_what_is_due(now_ns)
        moved = self._take_all()
        self._hand_over()
        if not moved:
            self._wait(now_ns)

    def _is_over(self, now_ns: int) -> bool:
        """Look now and then whether the run is over, and report progress."""
        if now_ns < self._look_ns:
            return False
        self._look_ns = now_ns + REPORT_EVERY_NS
        if self._received > self._reported:
            self._reported = self._received
            self._session.report_progress(self._received)
        return self._session.must_stop or now_ns > self._give_up_ns

    @property
    def _receiving(self) -> list[Link]:
        return [self._links[number] for number in self._agent.receives]

    def _reconnect(self) -> None:
        """Open the links again once the broker is back, and send again what it had not confirmed."""
        for link in self._links:
            link.close(0)
        for number, end in enumerate(self._agent.ends):
            self._links[number] = self._opened(end)
            again, left = FrameBatch.of(*self._unconfirmed[number]), self._out[number]
            again.count = len(self._unconfirmed[number])
            for frame in itertools.islice(left, self._gone[number], None):
                again.append(frame)
            self._out[number], self._gone[number] = again, 0
            self._unconfirmed[number].clear()
        _wait_together(self._receiving)

    def _opened(self, end: LinkEnd) -> Link:
        """PeerGone if the broker does not come back before the drain is over."""
        while True:
            try:
                return listen(end.url, end.token, end.pattern, end.keys)
            except TransportError as error:
                if time.monotonic_ns() > self._give_up_ns:
                    raise PeerGone(f"the broker did not come back: {error}") from error
                time.sleep(RECONNECT_EVERY_S)

    def _wait(self, now_ns: int) -> None:
        receiving, due = self._receiving, self._next_due
        until_ns = min(now_ns + TICK_NS, self._dues_ns[due] if due < len(self._dues_ns) else 1 << 62)
        stuck = [link for link, out in zip(self._links, self._out, strict=True) if out.count]
        if stuck:
            stuck[0].wait(min(until_ns, now_ns + 1_000_000), readable=False, writable=True)
        elif receiving:
            receiving[0].wait(until_ns)
        else:
            self._links[0].wait(until_ns, readable=False)

    def _begin_what_is_due(self, now_ns: int) -> None:
        while self._next_due < len(self._dues_ns) and self._dues_ns[self._next_due] <= now_ns:
            self._next_due += 1
            self._begin(self._whose[self._next_due - 1], self._dues_ns[self._next_due - 1])

    def _begin(self, driver: int, due_ns: int) -> None:
        (location, interaction), nth = self._drivers[driver], self._begun[driver]
        self._begun[driver] += 1
        message, winner = INTERACTIONS[interaction].messages[0], 0
        target = self._target(message, location, 0, 0)
        if message.to is To.FAMILY:
            target, winner = self._chain.family(location.number, nth), self._chain.winner(location.number, nth)
        if due_ns >= self._from_ns:
            self._lag_ns.append(time.monotonic_ns() - due_ns)
        self._send(
            NUMBER_OF[message.name], location, target, size_number(location, nth), location.number, winner, due_ns
        )

    def _take_all(self) -> int:
        moved, batch = 0, self._batch
        for link in self._receiving:
            batch.clear()
            if link.receive(batch):
                moved += batch.count
                self._handle(batch, time.monotonic_ns())
        return moved

    def _handle(self, batch: FrameBatch, now_ns: int) -> None:
        frames, offsets = batch.buffer.data, batch.offsets[: batch.count + 1].tolist()
        is_measured = self._from_ns <= now_ns < self._until_ns
        for at, end in itertools.pairwise(offsets):
            head = Head._make(HEAD.unpack_from(frames, at))
            counts, copy = self._counts[head.message], self._copy(head)
            counts.received += 1
            if is_measured:
                counts.measured_received += 1
                counts.measured_bytes += end - at
                counts.delivery_ns.append(now_ns - head.handed_over_ns)
                counts.since_due_ns.append(now_ns - head.due_ns)
            if copy < self._copies(head):
                self._received += 1
                self._answer(head, copy)
            else:
                counts.doubled += 1

    def _copy(self, head: Head) -> int:
        """How often this message came before; subscribers of one agent have a copy each."""
        stream = head.message, head.target, head.sender
        seen = self._seen.setdefault(stream, bytearray())
        if head.sequence >= len(seen):
            seen.extend(bytes(head.sequence + 1 - len(seen)))
        copy = seen[head.sequence]
        seen[head.sequence] = min(copy + 1, 255)
        return copy

    def _copies(self, head: Head) -> int:
        to = MESSAGES[head.message].to
        if to is To.EVERYBODY:
            return len(self._own[Kind.SM])
        return len(self._suppliers_here(head.target)) if to is To.FAMILY else 1

    def _suppliers_here(self, family: int) -> list[int]:
        return [supplier for supplier in self._chain.suppliers_of[family] if supplier in self._own[Kind.SP]]

    def _answer(self, head: Head, copy: int) -> None:
        message = MESSAGES[head.message]
        number = self._suppliers_here(head.target)[copy] if message.to is To.FAMILY else head.target
        for answer in ANSWERS[head.message]:
            if MESSAGES[answer].name == "pOrder" and head.sender != head.winner:
                continue
            me = Location(message.target, number)
            target = self._target(MESSAGES[answer], me, head.sender, head.initiator)
            self._send(answer, me, target, head.size, head.initiator, head.winner, head.due_ns)

    def _target(self, message: Message, me: Location, sender: int, initiator: int) -> int:
        """The number of the destination, of all but calls for offers."""
        match message.to:
            case To.ITSELF:
                return me.number
            case To.ITS_DC:
                return self._chain.centre_of(me.number)
            case To.SENDER:
                return sender
            case To.INITIATOR:
                return initiator
            case To.HQ_IN_TURN:
                self._turns[me] = (self._turns[me] + 1) % self._chain.many(Kind.HQ)
                return self._turns[me]
            case _:
                return 0

    def _send(
        self, message: int, me: Location, target: int, size: int, initiator: int, winner: int, due_ns: int
    ) -> None:
        link, route = self._agent.routes[message, target]
        stream = message, target, me.number
        now_ns, sequence, counts = time.monotonic_ns(), self._sequences[stream], self._counts[message]
        self._sequences[stream] = sequence + 1
        head = HEAD.pack(route, message, size, target, me.number, initiator, winner, sequence, now_ns, due_ns)
        self._out[link].append(head + _bodies()[message][size])
        counts.sent += 1
        counts.expected += self._chain.copies(MESSAGES[message], target)
        counts.measured_sent += self._from_ns <= now_ns < self._until_ns

    def _hand_over(self) -> None:
        """Give the links what they take; the rest stays for the next time."""
        for number, (link, out) in enumerate(zip(self._links, self._out, strict=True)):
            if not out.count:
                continue
            first, self._gone[number] = self._gone[number], link.send(out, self._gone[number])
            if self._agent.ends:
                self._keep_unconfirmed(number, first)
            if self._gone[number] == out.count:
                out.clear()
                self._gone[number] = 0

    def _keep_unconfirmed(self, number: int, first: int) -> None:
        """Remember the frames that a link took, until the broker has confirmed them."""
        facts, kept = self._links[number].facts(), self._unconfirmed[number]
        if facts["confirmed"] is not None:
            kept.extend(itertools.islice(self._out[number], first, self._gone[number]))
            while len(kept) > facts["published"] - facts["confirmed"]:
                kept.popleft()

    def result(self) -> RoleResult:
        by_message = {MESSAGES[number].name: _as_details(counts) for number, counts in sorted(self._counts.items())}
        return RoleResult(
            sent=sum(counts.sent for counts in self._counts.values()),
            received=self._received,
            first_ns=self._start_ns,
            last_ns=time.monotonic_ns(),
            details={
                "messages": by_message,
                "lag": LogBuckets.of(np.array(self._lag_ns, np.int64)),
                "left_in_queues": self._left_in_queues(),
            },
        )

    def _left_in_queues(self) -> int:
        until_ns = time.monotonic_ns() + OPEN_NS
        return sum(link.left(until_ns) for link in self._links if isinstance(link, LooksIntoQueues))


def _as_details(counts: Counts) -> dict[str, Any]:
    return {
        **{name: value for name, value in vars(counts).items() if not name.endswith("_ns")},
        "delivery": LogBuckets.of(np.array(counts.delivery_ns, np.int64)),
        "since_due": LogBuckets.of(np.array(counts.since_due_ns, np.int64)),
    }


def _drivers(agent: Agent) -> list[tuple[Location, int]]:
    """The interactions that the agent's locations begin."""
    return [
        (location, number)
        for location in agent.locations
        for number in agent.chain.topology.interactions
        if INTERACTIONS[number].initiator is location.kind
    ]


def _merged(agent: Agent, drivers: Sequence[tuple[Location, int]], start_ns: int) -> tuple[list[int], list[int]]:
    """(when something is due, which driver it is), in the order of time."""
    dues = [agent.chain.dues_ns(location, number, agent.times.driven_s) for location, number in drivers]
    if not dues:
        return [], []
    due_ns, whose = np.concatenate(dues) + start_ns, np.repeat(np.arange(len(dues)), [len(own) for own in dues])
    order = np.argsort(due_ns, kind="stable")
    return due_ns[order].tolist(), whose[order].tolist()


def _wait_together(links: Sequence[Link]) -> None:
    """Make a wait for the first link end for the others, too."""
    for link in links[1:]:
        if isinstance(links[0], WaitsBeside):
            links[0].wait_beside(link)
