"""The client `compiled`: a whole batch's frames are laid out, and scanned, by kernels; pika has everything else."""

from __future__ import annotations

from typing import Any

from pika.channel import Channel
from pika.connection import Parameters

from transports.amqp import wire
from transports.amqp.client import Client
from transports.amqp.correlated import DIGITS, AnswerLayout, RequestLayout, correlation_id
from transports.amqp.delivery import CONFIRM_WINDOW, PREFETCH, Delivery
from transports.amqp.layout import Layout
from transports.amqp.loops import OwnLoop
from transports.amqp.scanner import Scanner, Stop
from transports.amqp.stream import Stream
from transports.amqp.topology import Route
from transports.base import PeerGone
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.returns import Returns

CHANNEL = 1


def warm() -> None:
    """Run every kernel once, so that nothing compiles once a broker waits."""
    out, frame_max = FrameBatch().buffer, Parameters.DEFAULT_FRAME_MAX
    method, header = wire.publish_method(CHANNEL, "", "", False), wire.content_header(CHANNEL, False)
    _, end = Layout(method, header, CHANNEL, frame_max).write(FrameBatch.of(b"x"), 0, 1, out, 0)
    Scanner(CHANNEL, frame_max).scan(out, 0, end, FrameBatch())


class CompiledClient(Client):
    loop_of = OwnLoop

    def __init__(self, loop: OwnLoop, route: Route, delivery: Delivery) -> None:
        super().__init__(loop, route, delivery)
        self._own = loop
        self.returns = Returns() if route.answers or route.asker else Returns(0)
        self._scanner = Scanner(CHANNEL, Parameters.DEFAULT_FRAME_MAX, CONFIRM_WINDOW, self.returns)
        self._aside = FrameBatch(PREFETCH, 2 * LONGEST_FRAME, LONGEST_FRAME)
        self._first_aside = 0
        self._stopped_full = False
        loop.consume = lambda stream: self._scan(stream, self._aside)
        self._layout = self._layout_for(Parameters.DEFAULT_FRAME_MAX)
        self._layout.write(FrameBatch(0, 1, 1), 0, 0, self._aside.buffer, 0)
        correlation_id(b"")

    def _layout_for(self, frame_max: int) -> Layout | RequestLayout | AnswerLayout:
        exchange, key, mandatory, asker, reply_to, answers, tries = self._route
        durable = self._delivery.durable
        if answers:
            return AnswerLayout(exchange, key, mandatory, durable, CHANNEL, frame_max, self.returns)
        method = wire.publish_method(CHANNEL, exchange, key, mandatory or (tries and not self.published))
        if asker:
            return RequestLayout(method, CHANNEL, frame_max, durable, asker, reply_to)
        return Layout(method, wire.content_header(CHANNEL, durable), CHANNEL, frame_max)

    def opened(self, channel: Channel) -> None:
        assert channel.channel_number == CHANNEL
        self._layout = self._layout_for(self._loop.connection.params.frame_max)

    def message(self, *_: Any) -> None:
        raise AssertionError("the scanner leaves no delivery to pika")

    def publish(self, batch: FrameBatch, first: int, last: int) -> int:
        stream = self._own.stream
        if stream is None:
            return first
        if self._route.tries and not self.published:
            last = min(last, first + 1)
        message, stream.last = self._layout.write(batch, first, last, stream.outgoing, stream.last)
        if message == first and not stream.unsent:
            raise ValueError(f"a message of {len(batch[first])} bytes is too long for the buffer")
        self.published += message - first
        if self._route.tries and 0 < self.published == message - first:
            self._layout = self._layout_for(self._loop.connection.params.frame_max)
        return message

    def take(self, batch: FrameBatch) -> None:
        before = batch.count
        if self._aside.count:
            self._give_aside(batch)
        stream = self._own.stream
        if stream is not None and not self._aside.count:
            if stream.begin == stream.end or not self._stopped_full:
                stream.fill()
            self._scan(stream, batch)
        self.taken += batch.count - before
        if self._route.reply_to:
            self._check_answers(batch.count - before)

    def _check_answers(self, count: int) -> None:
        """PeerGone where one of them answers nothing that was asked here."""
        for _ in range(count):
            found = correlation_id(self.returns.take())
            if not found.startswith(self._route.asker) or not 0 < int(found[DIGITS:], 16) <= self.published:
                raise PeerGone(f"an answer came to what was not asked here: {found!r}")

    def _give_aside(self, batch: FrameBatch) -> None:
        """Give what was set aside, in order; what does not fit stays."""
        for index in range(self._first_aside, self._aside.count):
            frame = self._aside[index]
            if len(frame) > batch.largest_frame:
                self.too_long += 1
                if self.returns.is_kept:
                    self.returns.forget(self._aside.count - 1 - index)
            elif batch.count == batch.capacity_frames or batch.used_bytes + len(frame) > len(batch.buffer):
                self._first_aside = index
                return
            else:
                batch.append(frame)
        self._aside.clear()
        self._first_aside = 0

    def serve(self) -> None:
        self._loop.serve()

    def _scan(self, stream: Stream, batch: FrameBatch) -> None:
        why, too_long = Stop.FOREIGN, self._scanner.too_long
        while why is Stop.FOREIGN and stream.begin < stream.end:
            begin = stream.begin
            why, stream.begin, frame = self._scanner.scan(stream.incoming, begin, stream.end, batch)
            self._loop.connection.bytes_received += stream.begin - begin
            if why is Stop.FOREIGN:
                stream.hand_over(frame, stream.begin)
            elif why is Stop.BROKEN:
                raise PeerGone("the broker's bytes are no AMQP 0-9-1, or out of order")
        self._stopped_full = why is Stop.FULL
        self.too_long += self._scanner.too_long - too_long

    @property
    def has_more(self) -> bool:
        return self._stopped_full or self._aside.count > 0

    def acknowledge(self) -> None:
        """Deliveries are numbered from 1: what was taken is what has those numbers."""
        if self._own.stream is not None:
            self._own.stream.write(wire.acknowledgement(CHANNEL, self.taken + self.too_long))

    @property
    def stream(self) -> Stream | None:
        return self._own.stream

    @property
    def delivery_tag(self) -> int:
        """Of the last message."""
        return self._scanner.delivery_tag

    @property
    def empty(self) -> int:
        """So often there was nothing to get."""
        return self._scanner.empty

    @property
    def confirmed(self) -> int:
        return self._scanner.confirmed

    @property
    def refused(self) -> int:
        return self._scanner.refused

    @property
    def redelivered(self) -> int:
        return self._scanner.redelivered
