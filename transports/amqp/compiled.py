"""The client `compiled`: kernels write and scan the frames of whole batches; pika handles everything else.

The calls that a connection lends publish and scan in the same buffers. They serve the guarantee `lossy`, in which no
message is acknowledged or confirmed. They set the notice, which asks for Python, when a timer of pika's is due, and at
a frame that is for pika, which stays in its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from pika.channel import Channel
from pika.connection import Parameters
from pika.spec import Basic

from transports.amqp import layout, scanner, wire
from transports.amqp.address import Delivery
from transports.amqp.client import Client
from transports.amqp.connection import BEGIN, END, FIRST, INCOMING_BYTES, LAST, OTHERS, OUTGOING_BYTES, AmqpStream
from transports.amqp.layout import (
    DIGITS,
    NOWHERE,
    AnswerLayout,
    PublishLayout,
    RoutedLayout,
    correlation_id,
    lay_out,
)
from transports.amqp.loops import OwnLoop
from transports.amqp.scanner import STATE_NUMBERS, Scanner, Stop, scan_frames
from transports.amqp.topology import Route
from transports.base import PeerGone
from transports.frames import LONGEST_FRAME, Bytes, FrameBatch, Longs, ReturnAddresses
from transports.lending import (
    AT_ONCE,
    NOTICE,
    RECEIVE,
    SEND,
    SLEEP,
    Lent,
    lendable,
    monotonic_ns,
    move_bytes,
    poll,
    pollfd,
    receive_bytes,
    send_bytes,
)

# Indexes of the stream's numbers, behind those that connection.py has.
_FD = OTHERS
"""The socket's descriptor."""
_TIMER_NS = OTHERS + 1
"""The time of pika's next timer."""
_PUBLISHED = OTHERS + 2
"""Messages published since the last count."""
_SCANNED = OTHERS + 3
"""Bytes scanned since the last count."""
_CHANNEL = OTHERS + 4
_MOST_BODY = OTHERS + 5
"""The most bytes of a body frame."""
_HEAD_BYTES = OTHERS + 6
"""The length of the frames that precede a message's body."""
_LENGTH_AT = OTHERS + 7
"""The offset of the body's length in those frames."""
_POLLFD = OTHERS + 8
"""A struct pollfd."""
_TIMESPEC = OTHERS + 9
"""A struct timespec, two numbers."""
_REQUEST_COUNTS = OTHERS + 11
"""Two numbers, which the scanner takes for the counts of ReturnAddresses; lent calls keep no return addresses."""
_STATE = OTHERS + 13
"""The scanner's state."""

# Offsets in the stream's memory, whose first bytes are those that came.
_OUTGOING = INCOMING_BYTES
"""Bytes to send."""
_PIECES = INCOMING_BYTES + OUTGOING_BYTES
"""Room to put together a message of several frames."""
_HEAD = _PIECES + LONGEST_FRAME
"""The frames that precede a message's body."""
_FOR_PYTHON = (Stop.FOREIGN.value, Stop.BROKEN.value)
"""The ends of a scan at a frame that compiled code leaves to Python."""


@lendable(RECEIVE, scanner, wire)
def _receive(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    begin = numbers[BEGIN]
    end = numbers[END]
    if begin == end:
        begin = 0
        end = 0
    elif end == INCOMING_BYTES:
        move_bytes(memory.ctypes, memory[begin:].ctypes, end - begin)
        end = end - begin
        begin = 0
    if end < INCOMING_BYTES:
        came = receive_bytes(numbers[_FD], memory[end:].ctypes, INCOMING_BYTES - end, AT_ONCE)
        numbers[NOTICE] |= came == 0  # the broker has closed the connection
        end += max(came, 0)
    state = numbers[_STATE : _STATE + STATE_NUMBERS]
    too_long_before = state[scanner.TOO_LONG]
    pieces = memory[_PIECES:_HEAD]
    no_confirms = memory[:0]
    no_addresses = memory[:0].reshape(0, 1)
    no_address_lengths = numbers[:0]
    request_counts = numbers[_REQUEST_COUNTS:_STATE]
    why, at, count, last_frame = scan_frames(
        memory[:INCOMING_BYTES],
        begin,
        end,
        largest,
        state,
        no_confirms,
        pieces,
        buffer,
        offsets,
        count,
        no_addresses,
        no_address_lengths,
        request_counts,
    )
    if why in _FOR_PYTHON:
        at = last_frame  # it stays in its place
    numbers[NOTICE] |= why in _FOR_PYTHON or state[scanner.TOO_LONG] > too_long_before
    numbers[_SCANNED] += at - begin
    numbers[BEGIN] = at
    numbers[END] = end
    return count


@lendable(SEND, layout, wire)
def _send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    head = memory[_HEAD : _HEAD + numbers[_HEAD_BYTES]]
    no_number = 0
    outgoing = memory[_OUTGOING:_PIECES]
    taken, last = lay_out(
        buffer,
        offsets,
        first,
        end,
        head,
        numbers[_LENGTH_AT],
        NOWHERE,
        no_number,
        numbers[_CHANNEL],
        numbers[_MOST_BODY],
        outgoing,
        numbers[LAST],
    )
    numbers[_PUBLISHED] += taken - first
    at = numbers[FIRST]
    while at < last:
        sent_bytes = send_bytes(numbers[_FD], memory[_OUTGOING + at :].ctypes, last - at, AT_ONCE)
        if sent_bytes <= 0:
            numbers[FIRST] = at
            numbers[LAST] = last
            numbers[NOTICE] = 1
            return taken
        at += sent_bytes
    numbers[FIRST] = 0
    numbers[LAST] = 0
    return taken


@lendable(SLEEP)
def _sleep(numbers: Longs, _memory: Bytes, until_ns: int) -> None:
    timespec = numbers[_TIMESPEC:_REQUEST_COUNTS]
    news = poll(numbers[_POLLFD:_TIMESPEC], timespec, min(until_ns, numbers[_TIMER_NS]))
    numbers[NOTICE] |= news != 0 or monotonic_ns(timespec) >= numbers[_TIMER_NS]


class LentCalls:
    """The lent calls of one stream. Its scanner works on the stream's arrays."""

    def __init__(self, stream: AmqpStream, scanned: Scanner) -> None:
        self._stream = stream
        self._layout: PublishLayout | None = None
        numbers = stream.numbers
        scanned.move_to(numbers[_STATE : _STATE + STATE_NUMBERS], stream.memory[_PIECES:_HEAD])
        numbers[_FD] = stream.fd
        numbers[_POLLFD] = pollfd(stream.fd)

    def lend(self, messages: PublishLayout, timer_ns: int, settle: Callable[[], None]) -> Lent:
        """The calls, for messages of this layout, until pika's next timer."""
        numbers = self._stream.numbers
        memory = self._stream.memory
        if messages is not self._layout:
            self._layout = messages
            memory[_HEAD : _HEAD + len(messages.head)] = messages.head
            numbers[_HEAD_BYTES] = len(messages.head)
            numbers[_LENGTH_AT] = messages.length_at
            numbers[_CHANNEL] = messages.channel
            numbers[_MOST_BODY] = messages.most_body
        numbers[_TIMER_NS] = timer_ns
        numbers[NOTICE] |= timer_ns <= time.monotonic_ns()
        return Lent(_receive, _send, _sleep, numbers, memory, settle, pollfds=numbers[_POLLFD:_TIMESPEC])

    def take_counts(self) -> tuple[int, int]:
        """Reset the notice, and the counts that it returns: (messages published, bytes scanned)."""
        numbers = self._stream.numbers
        published = int(numbers[_PUBLISHED])
        scanned = int(numbers[_SCANNED])
        numbers[[NOTICE, _PUBLISHED, _SCANNED]] = 0
        return published, scanned


CHANNEL = 1
"""The number of a connection's one channel."""

AnyLayout = PublishLayout | AnswerLayout | RoutedLayout


def layout_of(route: Route, durable: bool, frame_max: int, returns: ReturnAddresses, published: int) -> AnyLayout:
    """The layout of a route's next messages; `published` is the number of earlier messages."""
    if route.answers:
        return AnswerLayout(route.exchange, route.key, route.mandatory, durable, CHANNEL, frame_max, returns)
    if route.keys:
        return RoutedLayout(route.exchange, route.keys, route.mandatory, durable, CHANNEL, frame_max)
    is_mandatory = route.mandatory or (route.first_is_mandatory and published == 0)
    method = wire.publish_method(CHANNEL, route.exchange, route.key, is_mandatory)
    return PublishLayout(method, CHANNEL, frame_max, durable, route.asker, route.reply_to)


def _count_of_scanner(name: str) -> Any:
    """An attribute of the client: a count that its scanner has under the same name."""
    return property(attrgetter(f"scanner.{name}"))


class CompiledClient(Client):
    _loop: OwnLoop
    _layout: AnyLayout
    confirmed = _count_of_scanner("confirmed")
    refused = _count_of_scanner("refused")
    redelivered = _count_of_scanner("redelivered")

    @classmethod
    def warm(cls, route: Route) -> None:
        nothing = FrameBatch(0, 1, 1)
        out = FrameBatch().buffer
        frame_max = Parameters.DEFAULT_FRAME_MAX
        layout_of(route, False, frame_max, ReturnAddresses(), 0).write(nothing, 0, 0, out, 0)
        Scanner(CHANNEL, frame_max).scan(out, 0, 0, nothing)
        correlation_id(b"")

    def __init__(self, loop: OwnLoop, route: Route, delivery: Delivery) -> None:
        super().__init__(loop, route, delivery)
        self.stream = loop.stream
        self.returns = ReturnAddresses() if route.answers or route.asker else ReturnAddresses(0)
        self.scanner = Scanner(CHANNEL, Parameters.DEFAULT_FRAME_MAX, delivery.confirm_window, self.returns)
        self._aside = FrameBatch(delivery.prefetch, 2 * LONGEST_FRAME, LONGEST_FRAME)
        self._stopped_full = False
        self._scanned_too_long = 0
        self._lent: LentCalls | None = None
        loop.consume = lambda stream: self._scan(stream, self._aside)

    def on_channel_open(self, channel: Channel) -> None:
        assert channel.channel_number == CHANNEL
        self._lay_out_next()

    def _lay_out_next(self) -> None:
        durable = self._delivery.durable
        frame_max = self._loop.connection.params.frame_max
        self._layout = layout_of(self._route, durable, frame_max, self.returns, self.published)

    def on_message(self, *_: Any) -> None:
        raise AssertionError("the scanner leaves no delivery to pika")

    def note_confirm(self, frame: Any) -> None:
        """The scanner counts confirms itself."""

    def publish(self, batch: FrameBatch, first: int, last: int) -> int:
        stream = self.stream
        is_trial = self._route.first_is_mandatory and self.published == 0
        if is_trial:
            last = min(last, first + 1)
        message, stream.last = self._layout.write(batch, first, last, stream.outgoing, stream.last)
        if message == first and not stream.unsent:
            raise ValueError(f"a message of {len(batch[first])} bytes is too long for the buffer")
        self.published += message - first
        if is_trial and self.published > 0:
            self._lay_out_next()  # later messages are not mandatory
        return message

    def lend(self, settle: Callable[[], None]) -> Lent | None:
        """The compiled calls; None while only Python can serve the link: see lent_by."""
        layout = self._layout
        if not self.stream.is_lendable or self.has_more or not isinstance(layout, PublishLayout):
            return None
        has_requests = layout.number_at != NOWHERE or len(self.returns) > 0
        must_try_first = self._route.first_is_mandatory and self.published == 0
        if has_requests or must_try_first:
            return None
        self._lent = self._lent or LentCalls(self.stream, self.scanner)
        return self._lent.lend(layout, self._loop.timers.next_due_ns, settle)

    def settle(self) -> None:
        self.count_lent()
        self._loop.timers.run_due()
        self._loop.flush()

    def count_lent(self) -> None:
        if self._lent is not None:
            published, scanned = self._lent.take_counts()
            self.published += published
            self._loop.connection.bytes_received += scanned

    def take(self, batch: FrameBatch) -> None:
        before = batch.count
        if self._aside.count:
            self._give_aside(batch)
        if not self._aside.count:
            has_whole_messages = self._stopped_full and self.stream.begin < self.stream.end
            if not has_whole_messages:
                self.stream.fill()
            self._scan(self.stream, batch)
        self.taken += batch.count - before
        if self._route.reply_to:
            self._check_answers(batch.count - before)

    def _check_answers(self, count: int) -> None:
        """PeerGone if one of the newest answers is to no request of this client."""
        for _ in range(count):
            request_id = correlation_id(self.returns.take())
            is_ours = request_id.startswith(self._route.asker)
            if not is_ours or not 0 < int(request_id[DIGITS:], 16) <= self.published:
                raise PeerGone(f"an answer came to no request of this client: {request_id!r}")

    def _give_aside(self, batch: FrameBatch) -> None:
        """Append the messages that were set aside, in order; those that do not fit stay."""
        for index, frame in enumerate(self._aside):
            if len(frame) > batch.largest_frame:
                self.too_long += 1
                if len(self.returns):
                    self.returns.forget(self._aside.count - 1 - index)
            elif not batch.has_room(len(frame)):
                self._aside.drop(index)
                return
            else:
                batch.append(frame)
        self._aside.clear()

    def _scan(self, stream: AmqpStream, batch: FrameBatch) -> None:
        why = Stop.FOREIGN
        while why is Stop.FOREIGN and stream.begin < stream.end:
            begin = stream.begin
            why, stream.begin, last_frame = self.scanner.scan(stream.incoming, begin, stream.end, batch)
            self._loop.connection.bytes_received += stream.begin - begin
            if why is Stop.FOREIGN:
                stream.hand_over(last_frame, stream.begin)
            elif why is Stop.BROKEN:
                raise PeerGone("the broker's bytes are no AMQP 0-9-1, or out of order")
        self._stopped_full = why is Stop.FULL
        self.too_long += self.scanner.too_long - self._scanned_too_long
        self._scanned_too_long = self.scanner.too_long

    @property
    def has_more(self) -> bool:
        return self._stopped_full or self._aside.count > 0

    def acknowledge(self, count: int) -> None:
        """The broker numbers deliveries from 1."""
        self.stream.write(wire.method_frame(CHANNEL, Basic.Ack(count, multiple=True)))
