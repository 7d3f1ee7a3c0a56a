"""Links without a wire, and a clock that moves only when told: a whole session of the gateway, to the nanosecond."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import xxhash

from exchange.measurements import Source
from exchange.messages import Confirmation, End, Hello, Message, Order, Resume, decode, decode_all, encode
from exchange.session import Terms
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

MS = 1_000_000
SECOND = 1_000_000_000
START_NS = 5 * SECOND
TURN_NS = 5_000
"""A turn of the loop takes its time."""
CONFIRMATION = encode(Confirmation(0))[:1]


class Clock:
    """Stands in for `time.monotonic_ns`."""

    def __init__(self) -> None:
        self.now_ns = START_NS

    def __call__(self) -> int:
        return self.now_ns


class ScriptedLink(Link):
    """Hands out what is put into `inbox`; keeps what is sent. `room` is how many more frames it takes; None: all."""

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
        """All that was sent, unpacked."""
        return [message for frame in self.sent for message in decode_all(frame)]

    @property
    def orders(self) -> list[Order]:
        return [message for message in self.messages if isinstance(message, Order)]


class SimulatedEngine(ScriptedLink):
    """An engine `delay_ns` away on the simulated clock, that confirms every order and says what it saw.

    `answers(order)` gives the messages that answer one; while `deaf(now_ns)` it takes no frame.
    """

    def __init__(self, clock: Clock, terms: Terms, delay_ns: int = 100_000) -> None:
        super().__init__()
        self._clock, self._terms, self.delay_ns = clock, terms, delay_ns
        self.answers: Callable[[Order], list[Message]] = lambda order: [Confirmation(order.id)]
        self.deaf: Callable[[int], bool] = lambda now_ns: False
        self.gone_at_ns: int | None = None
        self.answers_end = True
        self._on_the_way: deque[tuple[int, bytes]] = deque()
        self._answered: list[bytes] = []
        self._orders: list[bytes] = []
        self.unanswered = self.most_unanswered = 0
        self.end: End | None = None

    def say(self, frame: bytes, delay_ns: int | None = None) -> None:
        ready_ns = self._clock.now_ns + (self.delay_ns if delay_ns is None else delay_ns)
        self._on_the_way.append((ready_ns, frame))

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
        sums = [xxhash.xxh64_intdigest(b"".join(part)) for part in (self._answered, self._orders)]
        return End(len(self._answered), sums[0], len(self._orders), sums[1])

    def receive(self, batch: FrameBatch) -> int:
        self._clock.now_ns += TURN_NS
        if self.gone_at_ns is not None and self._clock.now_ns >= self.gone_at_ns:
            raise PeerGone("the engine went away")
        while self._on_the_way and self._on_the_way[0][0] <= self._clock.now_ns:
            frame = self._on_the_way.popleft()[1]
            self.unanswered -= frame[:1] == CONFIRMATION
            self.inbox.append(frame)
        return super().receive(batch)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        super().wait(until_ns, readable, writable)
        wakes = [until_ns] + [ready_ns for ready_ns, _ in list(self._on_the_way)[:1]]
        if writable:
            wakes.append(self._clock.now_ns + MS)
        assert min(wakes) < START_NS + 10**6 * SECOND, "nothing would ever end this wait"
        self._clock.now_ns = max(self._clock.now_ns + TURN_NS, min(wakes))


class SimulatedReporter(ScriptedLink):
    """Takes everything, and answers the end."""

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
