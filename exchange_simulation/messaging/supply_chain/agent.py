"""An agent: a process that plays locations. It handles their messages, and begins their interactions."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from mmap import mmap

import numpy as np

from exchange_simulation.messaging.flow import REPORT_EVERY_NS
from exchange_simulation.messaging.roles import LinkEnd, RoleResult
from exchange_simulation.messaging.session import OPEN_NS, TICK_NS, Session, await_subscribers
from exchange_simulation.messaging.supply_chain.chain import NUMBER_OF, Chain, ChainTimes, Location, size_number
from exchange_simulation.messaging.supply_chain.ledger import HEAD, Head, Ledger, bodies_of
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, MESSAGES, AgentKind, Message, To
from exchange_simulation.messaging.supply_chain.post import Post
from transports.base import PeerGone
from transports.frames import FrameBatch

START_IN_NS = 300_000_000
"""Time from the moment at which the last agent is at work to the start of the clock."""
LOOK_AGAIN_S = 0.002
"""Interval at which an agent looks whether the clock has a start."""
Routes = Mapping[tuple[int, int], tuple[int, int]]
"""(number of a message, destination) to (index of a link, number of the destination on that link)."""


def _answers_to(message: Message) -> list[int]:
    """Numbers of the messages with which the receiver of a message answers."""
    return [NUMBER_OF[answer.name] for answer in MESSAGES if answer.after == message.name]


ANSWERS = [_answers_to(message) for message in MESSAGES]
"""The answers to each message, by its number."""


@dataclass(frozen=True)
class ChainAgent:
    """The task of a role that plays locations. A call returns what the role did, once the run is over."""

    chain: Chain
    locations: tuple[Location, ...]
    times: ChainTimes
    routes: Routes
    receiving_indexes: tuple[int, ...]
    """Indexes of the links from which the agent receives, and for all of which it waits together."""
    start_memory: mmap
    """Memory that all agents share: the start of the clock (monotonic, ns) as i64, 0 until it is chosen."""
    chooses_start: bool = False
    """True for the agent that chooses the start of the clock."""
    publishing_indexes: tuple[int, ...] = ()
    """Indexes of the links on each of which the agent waits for `subscribers` before it begins."""
    subscribers: int = 0
    """The number of subscribers of each of these links."""
    reopened_ends: tuple[LinkEnd, ...] = ()
    """The ends of links that are opened again once the broker is back; empty if the run ends with the broker."""

    def __call__(self, session: Session) -> RoleResult:
        try:
            for index in self.publishing_indexes:
                await_subscribers(session.links[index], self.subscribers, time.monotonic_ns() + OPEN_NS)
            working_agent = _WorkingAgent(self, session, self._await_start(session))
            working_agent.work()
            return working_agent.result()
        except PeerGone as error:
            return RoleResult(stopped=str(error))

    def _await_start(self, session: Session) -> int:
        """Wait for the start of the clock (monotonic, ns), and return it; returns now if the launcher says stop."""
        if self.chooses_start:
            self.start_memory[:8] = struct.pack("<q", time.monotonic_ns() + START_IN_NS)
        while True:
            (start_ns,) = struct.unpack("<q", self.start_memory[:8])
            if start_ns:
                return int(start_ns)
            if session.must_stop:
                return time.monotonic_ns()
            time.sleep(LOOK_AGAIN_S)


class _WorkingAgent:
    """An agent at work, from the common start to the end."""

    def __init__(self, agent: ChainAgent, session: Session, start_ns: int) -> None:
        self._agent = agent
        self._chain = agent.chain
        self._bodies = [bodies_of(agent.chain.topology.configured(message)) for message in MESSAGES]
        self._session = session
        times = agent.times
        until_ns = start_ns + int(times.driven_s * 1e9)
        self._start_ns = start_ns
        self._until_ns = until_ns
        self._give_up_ns = until_ns + int(times.drain_s * 1e9)
        self._ledger = Ledger(start_ns + int(times.warm_up_s * 1e9), until_ns)
        self._post = Post(session.links, agent.receiving_indexes, agent.reopened_ends, self._give_up_ns)
        self._last_headquarters: dict[Location, int] = {location: location.number for location in agent.locations}
        """By location, the headquarters that got its last message; the next one goes to the headquarters after that."""
        self._numbers_of_kind: dict[AgentKind, list[int]] = {kind: [] for kind in AgentKind}
        for location in agent.locations:
            self._numbers_of_kind[location.kind].append(location.number)
        self._reported = 0
        """The number of received messages that the launcher was told last."""
        self._next_due = 0
        """The index in `_dues_ns` of the next interaction."""
        self._next_report_ns = 0
        self._drivers = _drivers(agent)
        self._begun = [0] * len(self._drivers)
        """The number of interactions that each driver has begun."""
        self._dues_ns, self._due_drivers = _merged_dues(agent, self._drivers, start_ns)

    def work(self) -> None:
        """Begin interactions when they are due, and handle messages, until the run is over."""
        while True:
            now_ns = time.monotonic_ns()
            if now_ns >= self._next_report_ns:
                self._next_report_ns = now_ns + REPORT_EVERY_NS
                self._report_progress(now_ns)
                if self._is_over(now_ns):
                    break
            try:
                self._take_turn(now_ns)
            except PeerGone:
                if not self._agent.reopened_ends:
                    raise
                self._post.reconnect(lambda: self._session.report_progress(self._ledger.received))
        self._take_all()

    def _take_turn(self, now_ns: int) -> None:
        """Begin, receive and send once; wait if nothing has come."""
        self._begin_what_is_due(now_ns)
        moved = self._take_all()
        self._post.hand_over()
        if not moved:
            next_due_ns = self._dues_ns[self._next_due : self._next_due + 1]
            self._post.wait(min([now_ns + TICK_NS, *next_due_ns]))

    def _report_progress(self, now_ns: int) -> None:
        """Tell the launcher how many messages have come. Without new ones, tell it only while interactions begin."""
        received = self._ledger.received
        if received > self._reported or now_ns < self._until_ns:
            self._session.report_progress(received)
            self._reported = received

    def _is_over(self, now_ns: int) -> bool:
        """Return whether the launcher says stop, or the time for late messages has passed."""
        return self._session.must_stop or now_ns > self._give_up_ns

    def _begin_what_is_due(self, now_ns: int) -> None:
        while self._next_due < len(self._dues_ns) and self._dues_ns[self._next_due] <= now_ns:
            due = self._next_due
            self._next_due += 1
            self._begin(self._due_drivers[due], self._dues_ns[due])

    def _begin(self, driver: int, due_ns: int) -> None:
        """Send the first message of a driver's next interaction."""
        location, interaction = self._drivers[driver]
        nth = self._begun[driver]
        self._begun[driver] += 1
        message = INTERACTIONS[interaction].messages[0]
        if message.to is To.FAMILY:
            target = self._chain.family(location.number, nth)
            winner = self._chain.winner(location.number, nth)
        else:
            target = self._target(message, location, sender=0, initiator=0)  # a first message answers nobody
            winner = 0
        self._ledger.note_begun(due_ns, time.monotonic_ns())
        self._send(
            NUMBER_OF[message.name],
            location,
            target=target,
            size_index=size_number(location, nth),
            initiator=location.number,
            winner=winner,
            due_ns=due_ns,
        )

    def _take_all(self) -> int:
        """Handle the messages that have come; returns their number."""
        moved = 0
        for batch in self._post.batches():
            moved += batch.count
            self._handle(batch, time.monotonic_ns())
        return moved

    def _handle(self, batch: FrameBatch, now_ns: int) -> None:
        """Note each message of a batch, and answer it."""
        frames = batch.buffer.data
        offsets = batch.offsets[: batch.count + 1].tolist()
        for start, end in itertools.pairwise(offsets):
            head = Head._make(HEAD.unpack_from(frames, start))
            receivers = self._receivers(head)
            copy = self._ledger.note_received(head, end - start, len(receivers), now_ns)
            if copy < len(receivers):
                self._answer(head, receivers[copy])

    def _receivers(self, head: Head) -> list[int]:
        """Numbers of the agent's locations that get a copy of this message."""
        to = MESSAGES[head.message].to
        if to is To.EVERYBODY:
            return self._numbers_of_kind[AgentKind.SM]
        if to is To.FAMILY:
            return [
                number
                for number in self._chain.suppliers_of[head.target]
                if number in self._numbers_of_kind[AgentKind.SP]
            ]
        return [head.target]

    def _answer(self, head: Head, receiver: int) -> None:
        """Send the answers of a location to a message; only the winning offer is answered by an order."""
        me = Location(MESSAGES[head.message].target, receiver)
        for answer in ANSWERS[head.message]:
            if MESSAGES[answer].name == "pOrder" and head.sender != head.winner:
                continue
            self._send(
                answer,
                me,
                target=self._target(MESSAGES[answer], me, sender=head.sender, initiator=head.initiator),
                size_index=head.size_index,
                initiator=head.initiator,
                winner=head.winner,
                due_ns=head.due_ns,
            )

    def _target(self, message: Message, me: Location, *, sender: int, initiator: int) -> int:
        """The number of the destination of any message but a call for offers.

        `sender` and `initiator` are the numbers of locations: of the message that is answered, and of its interaction.
        """
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
                self._last_headquarters[me] = (self._last_headquarters[me] + 1) % self._chain.count_of(AgentKind.HQ)
                return self._last_headquarters[me]
            case _:
                return 0

    def _send(
        self, message: int, me: Location, *, target: int, size_index: int, initiator: int, winner: int, due_ns: int
    ) -> None:
        """Put a message behind those that wait for their link, and note it.

        `message` is an index of MESSAGES; the others are those of Head.
        """
        link, route = self._agent.routes[message, target]
        now_ns = time.monotonic_ns()
        deliveries = self._chain.copies(MESSAGES[message], target)
        sequence = self._ledger.note_sent(message, target, me.number, deliveries, now_ns)
        head = HEAD.pack(route, message, size_index, target, me.number, initiator, winner, sequence, now_ns, due_ns)
        self._post.add(link, head + self._bodies[message][size_index])

    def result(self) -> RoleResult:
        return RoleResult(
            sent=self._ledger.sent,
            received=self._ledger.received,
            first_ns=self._start_ns,
            last_ns=time.monotonic_ns(),
            details={**self._ledger.details(), "left_in_queues": self._post.left_in_queues()},
        )


def _drivers(agent: ChainAgent) -> list[tuple[Location, int]]:
    """The agent's locations with the interactions that they begin: (location, interaction)."""
    drivers = []
    for location in agent.locations:
        for number in agent.chain.topology.interactions:
            if INTERACTIONS[number].initiator is location.kind:
                drivers.append((location, number))
    return drivers


def _merged_dues(
    agent: ChainAgent, drivers: Sequence[tuple[Location, int]], start_ns: int
) -> tuple[list[int], list[int]]:
    """Return (due times, the driver of each), in the order of time."""
    dues = [agent.chain.dues_ns(location, number, agent.times) for location, number in drivers]
    if not dues:
        return [], []
    due_ns = np.concatenate(dues) + start_ns
    due_drivers = np.repeat(np.arange(len(dues)), [len(dues_of_driver) for dues_of_driver in dues])
    order = np.argsort(due_ns, kind="stable")
    return due_ns[order].tolist(), due_drivers[order].tolist()
