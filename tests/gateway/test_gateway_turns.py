"""The gateway's compiled turns do what its loop in Python does, whatever answers come, in whatever batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_links import ScriptedLink

from exchange.checksum import StreamChecksum
from exchange.measurements import Meter, Source
from exchange.messages import (
    ASK,
    Confirmation,
    End,
    Order,
    Quote,
    Rejection,
    Statistics,
    Timestamp,
    Trade,
    decode,
    encode,
)
from exchange.records import COMPLETION, decode_sent
from exchange.results import GatewayResult
from exchange.session import Terms
from exchange.settings import RunSettings
from gateway.seeded_orders import SeededOrders
from gateway.service import Gateway
from transports.base import Link
from transports.frames import FrameBatch
from transports.lending import NOTICE, RECEIVE, SEND, SLEEP, Lent, lendable

RUN = 7
ORDERS = 40
NEXT, COUNT, STEP, ROOM, SENT, SENT_BYTES, TABLES = range(1, 8)
"""Places in the numbers of a script: the next frame and the number of frames, frames that one receive brings, frames
that the link still takes, frames and bytes that were sent; then for each frame its offset and when it comes."""
SENT_FROM = 1 << 16
"""Where in memory the frames that the gateway sent begin, each behind its length as u16."""


@lendable(RECEIVE)
def _receive(numbers, memory, buffer, offsets, count, largest):
    for _ in range(numbers[STEP]):
        at = TABLES + 2 * numbers[NEXT]
        is_there = numbers[NEXT] < numbers[COUNT] and numbers[SENT] >= numbers[at + 1]
        if not is_there or count + 1 == len(offsets) or offsets[count] + largest > len(buffer):
            break
        frame = memory[numbers[at] : numbers[at + 2]]
        buffer[offsets[count] : offsets[count] + len(frame)] = frame
        offsets[count + 1] = offsets[count] + len(frame)
        numbers[NEXT] += 1
        count += 1
    return count


@lendable(SEND)
def _send(numbers, memory, buffer, offsets, first, end):
    taken = min(end, first + numbers[ROOM])
    for i in range(first, taken):
        length = offsets[i + 1] - offsets[i]
        if length == 0:  # an idle gateway says that it is there
            continue
        at = SENT_FROM + numbers[SENT_BYTES]
        memory[at], memory[at + 1] = length & 255, length >> 8
        memory[at + 2 : at + 2 + length] = buffer[offsets[i] : offsets[i + 1]]
        numbers[SENT] += 1
        numbers[SENT_BYTES] += 2 + length
    numbers[ROOM] -= taken - first
    return taken


@lendable(SLEEP)
def _sleep(numbers, _memory, _until_ns):
    """Wake at once. Python is asked for if there is no room, as by a link that waits for some."""
    numbers[NOTICE] = numbers[ROOM] == 0


class EngineScript(Link):
    """An engine: each of its frames comes once the gateway has sent so many. It takes `room` frames between waits.

    It has the state of its compiled calls also where it lends none, so that both are the same link.
    """

    url = "scripted://engine"

    def __init__(self, frames: list[tuple[int, bytes]], step: int, room: int, lends: bool) -> None:
        offsets = np.cumsum([0, *(len(frame) for _, frame in frames)])
        comes_after = [sent for sent, _ in frames]
        self.numbers = np.zeros(TABLES + 2 * len(offsets), np.int64)
        self.numbers[TABLES::2] = offsets
        self.numbers[TABLES + 1 : -1 : 2] = comes_after
        self.numbers[COUNT], self.numbers[STEP], self.numbers[ROOM] = len(frames), step, room
        self.memory = np.zeros(1 << 18, np.uint8)
        self.memory[: offsets[-1]] = np.frombuffer(b"".join(frame for _, frame in frames), np.uint8)
        self._room, self._lends = room, lends

    def lend(self) -> Lent | None:
        return Lent(_receive, _send, _sleep, self.numbers, self.memory, self._settle) if self._lends else None

    def _settle(self) -> None:
        self.numbers[NOTICE] = 0

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        batch.count = _receive_plainly(
            self.numbers, self.memory, batch.buffer, batch.offsets, before, batch.largest_frame
        )
        return batch.count - before

    def send(self, batch: FrameBatch, first: int) -> int:
        return _send_plainly(self.numbers, self.memory, batch.buffer, batch.offsets, first, batch.count)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self.numbers[ROOM] = self._room

    def close(self, linger_s: float = 1.0) -> None:
        pass

    @property
    def sent(self) -> list[bytes]:
        data, frames = self.memory[SENT_FROM : SENT_FROM + self.numbers[SENT_BYTES]].tobytes(), []
        while data:
            end = 2 + int.from_bytes(data[:2], "little")
            frames.append(data[2:end])
            data = data[end:]
        return frames


_receive_plainly, _send_plainly = _receive.plain, _send.plain


class ConfirmingReporter(ScriptedLink):
    """A reporter: takes everything, and confirms the end."""

    def send(self, batch: FrameBatch, first: int) -> int:
        end = super().send(batch, first)
        if self.sent and isinstance(decode(self.sent[-1]), End):
            self.inbox.append(encode(End(0, 0, 0, 0)))
        return end


def answers_to(order_id: int) -> st.SearchStrategy[bytes]:
    """A frame with the first answer to an order, and others before or behind it; or one that is no answer at all."""
    first = st.sampled_from([Confirmation(order_id), Trade(order_id, 500, 1), Rejection(order_id, 2)])
    others = st.lists(st.sampled_from([Quote(bid=1, ask=2), Trade(1, 500, 3), Confirmation(order_id)]), max_size=3)
    frames = st.tuples(others, first, others).map(lambda parts: [*parts[0], parts[1], *parts[2]])
    foreign = st.sampled_from([encode(Order(1, ASK, 500, 1)), b"\x00junk", b""])
    packed = frames.map(lambda messages: b"".join(map(encode, messages)))
    return st.one_of(packed, packed, packed, packed, foreign)


@st.composite
def scripts(draw: st.DrawFn, packing: int) -> list[tuple[int, bytes]]:
    """All that an engine says, each frame with the number of frames that the gateway must have sent before."""
    hello = encode(Terms(RUN, "price-time", packing, 999).hello(Source.ENGINE))
    frames_of_orders = -(-ORDERS // packing)
    said = [(1, hello)]
    for order_id in range(1, ORDERS + 1):
        sent = 2 + (order_id - 1) // packing + draw(st.integers(0, 2))
        comes_after = max(said[-1][0], min(sent, 1 + frames_of_orders))
        said.append((comes_after, draw(answers_to(order_id))))
    return [*said, (2 + frames_of_orders, encode(End(1, 2, 3, 4)))]


def reported(reporter: ConfirmingReporter) -> tuple[dict[str, int], dict[Meter, list[int]]]:
    """How many completion times were reported by clock, and the orders that were sampled by meter."""
    counts: dict[str, int] = {}
    sampled: dict[Meter, list[int]] = {}
    for message in map(decode, reporter.sent):
        match message:
            case Timestamp(meter, order_id):
                sampled.setdefault(Meter(meter), []).append(order_id)
            case Statistics(document):
                record = decode_sent(document, RUN)
                assert record is not None
                if record["kind"] == COMPLETION:
                    clock = record["payload"]["clock"]
                    counts[clock] = counts.get(clock, 0) + record["payload"]["count"]
    return counts, sampled


def session(script: EngineScript, packing: int) -> tuple[GatewayResult, ConfirmingReporter]:
    """The result of a gateway over this link, and its reporter."""
    run_settings = RunSettings(
        orders=ORDERS, orders_per_s=100_000.0, packing=packing, sampling_interval=3, timeout_s=20.0
    )
    reporter = ConfirmingReporter()
    gateway = Gateway(run_settings, RUN, script, reporter, (StreamChecksum(), StreamChecksum()))
    return gateway.run(), reporter


@given(st.data())
@settings(max_examples=40)
def test_compiled_turns_do_what_the_loop_in_python_does(data: st.DataObject) -> None:
    """docs/loops.md has both loops, step by step."""
    packing = data.draw(st.sampled_from([1, 1, 3]))
    frames = data.draw(scripts(packing))
    step, room = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    compiled_link, plain_link = (EngineScript(frames, step, room, lends) for lends in (True, False))
    compiled, compiled_reporter = session(compiled_link, packing)
    plain, plain_reporter = session(plain_link, packing)

    assert compiled_link.sent[1:] == plain_link.sent[1:], "all but the hello, which has the time"
    assert b"".join(compiled_link.sent[1:-1]) == SeededOrders.of(RunSettings(orders=ORDERS)).records(1, ORDERS)
    for fact in (
        "orders",
        "answers",
        "orders_answered",
        "trades",
        "confirmations",
        "quotes",
        "rejections",
        "junk_frames",
        "samples",
        "engine_said",
        "stopped",
    ):
        assert getattr(compiled, fact) == getattr(plain, fact), fact
    assert compiled.stopped is None
    assert reported(compiled_reporter) == reported(plain_reporter)
