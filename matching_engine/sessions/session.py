"""A gateway's session at an engine that several gateways share: its link, its counts, and the answers that wait."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from exchange.checksum import StreamChecksum
from exchange.instances import named
from exchange.messages import End, Hello, Message, encode, read
from exchange.meters import Source
from exchange.results import SessionResult, StreamCounts
from exchange.session import Disagreement, Terms
from matching_engine.sessions.routing import CLOSED, open_state
from matching_engine.turns import Sums
from transports.base import Link, PeerGone
from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import Lent

FRAMES_A_TURN = 512
"""The most orders that are taken from a gateway before the next gateway's turn."""
WAITING_ANSWERS = 1 << 17
"""The most answers that wait for a gateway beside those that its link has taken. With more, it is dropped."""
BYTES_OF_ANSWERS = 10 * WAITING_ANSWERS


class AnswerQueues:
    """The answers that wait for each gateway, in arrays that kernels fill. Row 0 belongs to no gateway."""

    def __init__(self, gateways: int) -> None:
        self.buffers: Bytes = np.zeros((1 + gateways, BYTES_OF_ANSWERS), np.uint8)
        self.ends: Longs = np.zeros((1 + gateways, WAITING_ANSWERS + 1), np.int64)
        self.counts: Longs = np.zeros(1 + gateways, np.int64)
        self.states: Longs = np.full(1 + gateways, CLOSED, np.int64)
        self.undelivered: Longs = np.zeros(1 + gateways, np.int64)
        """Answers for gateways that were dropped."""
        self.order_sums = _rows_of_checksums(1 + gateways)
        """The state of the checksum of each gateway's orders."""
        self.answer_sums = _rows_of_checksums(1 + gateways)
        """The state of the checksum of the answers that each gateway's link took."""

    def batch_of(self, gateway: int) -> FrameBatch:
        """Return a batch that shares a gateway's arrays, without its count."""
        batch = FrameBatch(1)  # its own memory is replaced by the queue's
        batch.buffer = self.buffers[gateway]
        batch.offsets = self.ends[gateway]
        return batch


def _rows_of_checksums(count: int) -> Bytes:
    """Return the states of this many checksums over nothing, in one array that kernels share."""
    return np.tile(StreamChecksum().state, (count, 1))


def _checksum_in(state: Bytes) -> StreamChecksum:
    """Return a checksum that goes on from a state, and keeps it there."""
    checksum = StreamChecksum()
    checksum.state = state
    return checksum


@dataclass
class SessionTimes:
    """Times of a session, in ns of the monotonic clock."""

    heard_ns: int = 0
    """When the last frame came."""
    taken_ns: int = 0
    """When the link last took an answer, or had none to take."""


class GatewaySession:
    """Serves one gateway of several. Nothing here waits: a gateway that does not keep up must not hold up the others.

    An error of the link, and whatever the gateway does wrong, ends this session alone: `dropped` says why.
    """

    def __init__(self, number: int, link: Link, terms: Terms, queues: AnswerQueues) -> None:
        """`terms` are those of this gateway: they have its number."""
        self.number = number
        self.link = link
        self.sums = Sums(_checksum_in(queues.order_sums[number]), _checksum_in(queues.answer_sums[number]))
        self.orders_taken = 0
        self.answers_sent = 0
        self.times = SessionTimes()
        self.hello: Hello | None = None
        self.end: End | None = None
        self.dropped: str | None = None
        """Why the session ended before its gateway's end."""
        self.refused = 0
        self.junk = 0
        self._terms = terms
        self._queues = queues
        self._answers = queues.batch_of(number)
        self._first_unsent = 0

    @property
    def name(self) -> str:
        """The gateway's name, as records have it."""
        return named("gateway", self.number)

    @property
    def is_open(self) -> bool:
        """Whether the gateway gets answers."""
        return self.hello is not None and self.dropped is None

    @property
    def trades(self) -> bool:
        """Whether orders may come."""
        return self.is_open and self.end is None

    @property
    def waiting(self) -> int:
        """Answers that wait for the link."""
        return int(self._queues.counts[self.number]) - self._first_unsent

    @property
    def has_room(self) -> bool:
        """Whether more may be received. Half the queue of answers must be free, so that a slow gateway sends less."""
        return self.is_open and int(self._queues.counts[self.number]) < WAITING_ANSWERS // 2

    def drop(self, reason: str) -> None:
        """End the session. The gateway's orders stay in the book; answers to them go nowhere, and are counted."""
        if self.dropped is not None:
            return
        self.dropped = reason
        self._queues.states[self.number] = CLOSED
        self._queues.undelivered[self.number] += self.waiting
        self._queues.counts[self.number] = 0
        self._first_unsent = 0

    def receive(self, batch: FrameBatch) -> int:
        """Receive once into a batch. Returns the number of frames; 0 also if the gateway has left, which drops it."""
        batch.clear()
        try:
            frames = self.link.receive(batch)
        except PeerGone as error:
            self.drop(str(error))
            return 0
        if frames:
            self.times.heard_ns = time.monotonic_ns()
        return frames

    def serve_link(self) -> None:
        """Let the link do its own work, without waiting."""
        try:
            self.link.wait(0)
        except PeerGone as error:
            self.drop(str(error))

    def greet(self) -> None:
        """Receive until the gateway's hello has come, and check it. Disagreement drops the gateway."""
        batch = FrameBatch(FRAMES_A_TURN)
        while self.hello is None and self.dropped is None and self.receive(batch):
            for frame in list(batch):
                message = read(frame)
                if isinstance(message, Hello):
                    self._take_hello(message)
                elif frame:
                    self.junk += 1

    def _take_hello(self, hello: Hello) -> None:
        try:
            self._terms.agree(hello)
        except Disagreement as error:
            self.send_message(self._terms.hello(Source.ENGINE))  # so that the gateway, too, sees which terms differ
            self.refused += 1
            self.drop(str(error))
            return
        self.hello = hello

    def begin(self, *, gets_quotes: bool) -> None:
        """Answer the hello: from now on orders may come, and answers go."""
        now_ns = time.monotonic_ns()
        self.times = SessionTimes(heard_ns=now_ns, taken_ns=now_ns)
        self._queues.states[self.number] = open_state(gets_quotes=gets_quotes)
        self.send_message(self._terms.hello(Source.ENGINE))

    def read_foreign(self, frame: bytes) -> None:
        """Take a frame that is no order."""
        if not frame:  # an idle gateway is still there
            return
        message = read(frame)
        if isinstance(message, End) and self.end is None:
            self.end = message
        elif isinstance(message, Hello):
            self.refused += 1
            self.drop(f"two gateways say that they are {self.name}: give each its own --instance")
        else:
            self.junk += 1

    def send_answers(self) -> int:
        """Send what the link takes of the answers that wait, and hash it. Returns how many were sent."""
        count = int(self._queues.counts[self.number])
        first = self._first_unsent
        self._answers.count = count
        try:
            end = self.link.send(self._answers, first)
        except PeerGone as error:
            self.drop(str(error))
            return 0
        if end == first:
            return 0
        self.times.taken_ns = time.monotonic_ns()
        self.sums.answers.update(self._answers.span(first, end))
        self.answers_sent += end - first
        self._first_unsent = end
        if end == count:
            self._forget_sent()
        elif end > WAITING_ANSWERS // 4:
            self._answers.drop(end)
            self._forget_sent(self._answers.count)
        return end - first

    @property
    def first_unsent(self) -> int:
        """The first answer in the queue that the link has not taken."""
        return self._first_unsent

    def note_turns(self, taken: int, sent: int, first_unsent: int, has_spoken: bool) -> None:
        """Note what compiled turns did: orders taken, answers sent, the first unsent one, and whether frames came."""
        now_ns = time.monotonic_ns()
        self.orders_taken += taken
        self.answers_sent += sent
        self._first_unsent = first_unsent
        if sent:
            self.times.taken_ns = now_ns
        if has_spoken:
            self.times.heard_ns = now_ns

    def settle(self, lent: Lent) -> None:
        """Do what compiled turns left the link to do in Python."""
        try:
            lent.settle()
        except PeerGone as error:
            self.drop(str(error))

    def _forget_sent(self, waiting: int = 0) -> None:
        self._queues.counts[self.number] = waiting
        self._first_unsent = 0

    def send_message(self, message: Message) -> bool:
        """Send a message that is no answer, if the link takes it now."""
        return self._send_frame(encode(message))

    def show_life(self) -> None:
        """Send an empty frame to a gateway that waits for the others' ends."""
        if self.end is not None and self.is_open and not self.waiting:
            self._send_frame(b"")

    def _send_frame(self, frame: bytes) -> bool:
        try:
            return self.link.send(FrameBatch.of(frame), 0) == 1
        except PeerGone as error:
            self.drop(str(error))
            return False

    @property
    def engine_end(self) -> End:
        """The engine's end of the session."""
        return End(
            sent=self.answers_sent,
            sent_checksum=self.sums.answers.value,
            received=self.orders_taken,
            received_checksum=self.sums.orders.value,
        )

    def result(self) -> SessionResult:
        """Return the counts and checksums of both directions."""
        return SessionResult(
            gateway=self.number,
            orders=StreamCounts(messages=self.orders_taken, checksum=self.sums.orders.hex),
            answers=StreamCounts(messages=self.answers_sent, checksum=self.sums.answers.hex),
            gateway_said=self.end._asdict() if self.end else None,
            undelivered=int(self._queues.undelivered[self.number]),
            dropped=self.dropped,
        )
