"""Links without a wire, for sessions of a gateway that are exact to the nanosecond. Only the links move the clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import xxhash

from exchange.messages import Confirmation, End, Hello, Message, Order, Resume, decode, decode_all, encode
from exchange.meters import Source
from exchange.session import Terms
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

MS = 1_000_000
SECOND = 1_000_000_000
START_NS = 5 * SECOND
TURN_NS = 5_000
"""The time that a turn of the loop takes."""
CONFIRMATION = encode(Confirmation(0))[:1]
"""The type byte of a confirmation."""


class Clock:
    """Stands in for `time.monotonic_ns`."""

    def __init__(self) -> None:
        self.now_ns = START_NS

    def __call__(self) -> int:
        return self.now_ns


class ScriptedLink(Link):
    """Delivers the frames in `inbox`, and keeps sent frames in `sent`. Takes `room` more frames; all if None."""

    url = "scripted://engine"

    def __init__(self, room: int | None = None) -> None:
        self.inbox: deque[bytes] = deque()
        self.sent: list[bytes] = []
        self.room = room
        self.waits: list[tuple[int, bool]] = []
        self.closed = False

    def receive(self, batch: FrameBatch) -> int:
        taken = min(len(self.inbox), batch.capacity_frames - batch.count)
        for _ in range(taken):
            batch.append(self.inbox.popleft())
        return taken

    def send(self, batch: FrameBatch, first: int) -> int:
        end = batch.count if self.room is None else min(batch.count, first + self.room)
        if self.room is not None:
            self.room -= end - first
        self.sent += [batch[index] for index in range(first, end)]
        return end

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self.waits.append((until_ns, writable))

    def close(self, linger_s: float = 1.0) -> None:
        self.closed = True

    @property
    def messages(self) -> list[Message]:
        """All messages that were sent."""
        return [message for frame in self.sent for message in decode_all(frame)]

    @property
    def orders(self) -> list[Order]:
        return [message for message in self.messages if isinstance(message, Order)]


class SimulatedEngine(ScriptedLink):
    """An engine that answers every order after `delay_ns` on the simulated clock, and ends as an engine does."""

    def __init__(self, clock: Clock, terms: Terms, delay_ns: int = 100_000) -> None:
        super().__init__()
        self._clock = clock
        self._terms = terms
        self.delay_ns = delay_ns
        self.answers: Callable[[Order], list[Message]] = lambda order: [Confirmation(order.id)]
        """Returns the answers to an order."""
        self.deaf: Callable[[int], bool] = lambda now_ns: False
        """Returns True if the engine takes no frame at this time."""
        self.gone_at_ns: int | None = None
        """When the engine goes away; never if None."""
        self.answers_end = True
        self._on_the_way: deque[tuple[int, bytes]] = deque()
        """The engine's frames, each with the time at which it arrives."""
        self._answered: list[bytes] = []
        """The records of all answers."""
        self._orders: list[bytes] = []
        """The records of all orders."""
        self.unanswered = 0
        self.most_unanswered = 0
        self.end: End | None = None
        """The gateway's end."""

    def say(self, frame: bytes, delay_ns: int | None = None) -> None:
        """Send a frame to the gateway, which arrives after a delay."""
        if delay_ns is None:
            delay_ns = self.delay_ns
        self._on_the_way.append((self._clock.now_ns + delay_ns, frame))

    def arrive_at(self, time_ns: int) -> None:
        """Let all frames that are on the way arrive at this time."""
        self._on_the_way = deque((time_ns, frame) for _, frame in self._on_the_way)

    def send(self, batch: FrameBatch, first: int) -> int:
        if self.deaf(self._clock.now_ns):
            return first
        for index in range(first, batch.count):
            self._take(batch[index])
        return super().send(batch, first)

    def _take(self, frame: bytes) -> None:
        for message in decode_all(frame):
            match message:
                case Hello():
                    self.say(encode(self._terms.hello(Source.ENGINE)))
                case Resume(number):
                    self.say(encode(Resume(number, len(self._orders), 0)))
                case Order():
                    self._take_order(message)
                case End():
                    self.end = message
                    if self.answers_end:
                        self.say(encode(self._closing()))

    def _take_order(self, order: Order) -> None:
        self._orders.append(encode(order))
        self.unanswered += 1
        self.most_unanswered = max(self.most_unanswered, self.unanswered)
        for answer in map(encode, self.answers(order)):
            self._answered.append(answer)
            self.say(answer)

    def _closing(self) -> End:
        """Return the engine's end."""
        return End(
            sent=len(self._answered),
            sent_checksum=xxhash.xxh64_intdigest(b"".join(self._answered)),
            received=len(self._orders),
            received_checksum=xxhash.xxh64_intdigest(b"".join(self._orders)),
        )

    def receive(self, batch: FrameBatch) -> int:
        self._clock.now_ns += TURN_NS
        if self.gone_at_ns is not None and self._clock.now_ns >= self.gone_at_ns:
            raise PeerGone("the engine went away")
        while self._on_the_way and self._on_the_way[0][0] <= self._clock.now_ns:
            _, frame = self._on_the_way.popleft()
            if frame[:1] == CONFIRMATION:
                self.unanswered -= 1
            self.inbox.append(frame)
        return super().receive(batch)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        super().wait(until_ns, readable, writable)
        wakes = [until_ns]
        if self._on_the_way:
            next_arrival_ns, _ = self._on_the_way[0]
            wakes.append(next_arrival_ns)
        if writable:
            wakes.append(self._clock.now_ns + MS)
        assert min(wakes) < START_NS + 10**6 * SECOND, "nothing would ever end this wait"
        self._clock.now_ns = max(self._clock.now_ns + TURN_NS, min(wakes))


class SimulatedReporter(ScriptedLink):
    """A reporter that takes everything, and confirms the source's end."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.answers_end = True

    def send(self, batch: FrameBatch, first: int) -> int:
        end = super().send(batch, first)
        if self.answers_end and self.sent and isinstance(decode(self.sent[-1]), End):
            self.inbox.append(encode(End(0, 0, 0, 0)))
        return end

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        super().wait(until_ns, readable, writable)
        self._clock.now_ns = max(self._clock.now_ns, until_ns)

    @property
    def messages(self) -> list[Message]:
        return [decode(frame) for frame in self.sent]
