"""The gateway's compiled turns do the same as its loop in Python, for all answers and batches."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_links import ScriptedLink

from exchange.checksum import StreamChecksum
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
from exchange.meters import Meter, Source
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
# Places in the numbers of a script. Place 0 is NOTICE.
NEXT = 1
"""The engine's next frame."""
COUNT = 2
"""The number of the engine's frames."""
STEP = 3
"""The number of frames that one receive brings."""
ROOM = 4
"""The number of frames that the link still takes."""
SENT = 5
"""The number of frames that the gateway sent."""
SENT_BYTES = 6
"""The number of bytes that the gateway sent."""
HAS_MORE = 7
"""1 if the last receive left a frame for which the batch had no room, else 0."""
SLEPT_TOO_EARLY = 8
"""How often the gateway slept although such a frame waited."""
TABLES = 9
"""The first of two numbers for each of the engine's frames: its offset, and how many frames must be sent before."""
SENT_FROM = 1 << 16
"""Where in memory the frames that the gateway sent begin. Each follows its length as u16."""


@lendable(RECEIVE)
def _receive(numbers, memory, buffer, offsets, count, largest):
    numbers[HAS_MORE] = 0
    for _ in range(numbers[STEP]):
        at = TABLES + 2 * numbers[NEXT]
        is_there = numbers[NEXT] < numbers[COUNT] and numbers[SENT] >= numbers[at + 1]
        if not is_there:
            break
        if count + 1 == len(offsets) or offsets[count] + largest > len(buffer):
            numbers[HAS_MORE] = 1
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
        if length == 0:  # a sign of life of an idle gateway
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
    """Wake at once. Without room, call for Python, as a link does that waits for room."""
    numbers[NOTICE] = numbers[ROOM] == 0
    numbers[SLEPT_TOO_EARLY] += numbers[HAS_MORE]


class EngineScript(Link):
    """An engine whose frames each come once the gateway has sent a given number of frames.

    It takes `room` frames between waits. The state is that of the compiled calls also if it lends no calls, so that
    both kinds of link do the same.
    """

    url = "scripted://engine"

    def __init__(self, frames: list[tuple[int, bytes]], step: int, room: int, lends: bool) -> None:
        offsets = np.cumsum([0, *(len(frame) for _, frame in frames)])
        comes_after = [sent for sent, _ in frames]
        self.numbers = np.zeros(TABLES + 2 * len(offsets), np.int64)
        self.numbers[TABLES::2] = offsets
        self.numbers[TABLES + 1 : -1 : 2] = comes_after
        self.numbers[COUNT] = len(frames)
        self.numbers[STEP] = step
        self.numbers[ROOM] = room
        self.memory = np.zeros(1 << 18, np.uint8)
        self.memory[: offsets[-1]] = np.frombuffer(b"".join(frame for _, frame in frames), np.uint8)
        self._room = room
        self._lends = lends

    def lend(self) -> Lent | None:
        if not self._lends:
            return None
        return Lent(_receive, _send, _sleep, self.numbers, self.memory, self._settle)

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
        data = self.memory[SENT_FROM : SENT_FROM + self.numbers[SENT_BYTES]].tobytes()
        frames = []
        while data:
            end = 2 + int.from_bytes(data[:2], "little")
            frames.append(data[2:end])
            data = data[end:]
        return frames


_receive_plainly = _receive.plain
_send_plainly = _send.plain


class ConfirmingReporter(ScriptedLink):
    """A reporter: takes everything, and confirms the end."""

    def send(self, batch: FrameBatch, first: int) -> int:
        end = super().send(batch, first)
        if self.sent and isinstance(decode(self.sent[-1]), End):
            self.inbox.append(encode(End(0, 0, 0, 0)))
        return end


def answers_to(order_id: int) -> st.SearchStrategy[bytes]:
    """Make a frame with the first answer to an order and other answers around it, or a foreign frame."""
    first = st.sampled_from([Confirmation(order_id), Trade(order_id, 500, 1), Rejection(order_id, 2)])
    others = st.lists(st.sampled_from([Quote(bid=1, ask=2), Trade(1, 500, 3), Confirmation(order_id)]), max_size=3)
    packed = st.builds(
        lambda before, answer, after: b"".join(map(encode, [*before, answer, *after])), others, first, others
    )
    foreign = st.sampled_from([encode(Order(1, ASK, 500, 1)), b"\x00junk", b""])
    return st.one_of(packed, packed, packed, packed, foreign)


@st.composite
def scripts(draw: st.DrawFn, packing: int) -> list[tuple[int, bytes]]:
    """Make all frames of an engine, each with the number of frames that the gateway must have sent before."""
    hello = encode(Terms(RUN, "price-time", packing, 999).hello(Source.ENGINE))
    frames_of_orders = math.ceil(ORDERS / packing)
    frames = [(1, hello)]
    for order_id in range(1, ORDERS + 1):
        sent = 2 + (order_id - 1) // packing + draw(st.integers(0, 2))
        previous_comes_after, _ = frames[-1]
        comes_after = max(previous_comes_after, min(sent, 1 + frames_of_orders))
        frames.append((comes_after, draw(answers_to(order_id))))
    return [*frames, (2 + frames_of_orders, encode(End(1, 2, 3, 4)))]


def reported(reporter: ConfirmingReporter) -> tuple[dict[str, int], dict[Meter, list[int]]]:
    """Return the number of reported completion times by clock, and the ids of the sampled orders by meter."""
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


def session(
    script: EngineScript, packing: int, orders_per_s: float = 100_000.0
) -> tuple[GatewayResult, ConfirmingReporter]:
    """Run a gateway over this link. Returns its result and its reporter."""
    run_settings = RunSettings(
        orders=ORDERS, orders_per_s=orders_per_s, packing=packing, sampling_interval=3, timeout_s=20.0
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
    step = data.draw(st.integers(1, 9))
    room = data.draw(st.integers(1, 20))
    compiled_link = EngineScript(frames, step, room, lends=True)
    plain_link = EngineScript(frames, step, room, lends=False)
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


def test_the_gateway_does_not_sleep_while_a_frame_waits_for_room_in_its_batch() -> None:
    """No descriptor becomes ready for such a frame: it would wait until the next order is due."""
    hello = encode(Terms(RUN, "price-time", 1, 999).hello(Source.ENGINE))
    quotes = [(20, encode(Quote(bid=1, ask=2)))] * 5000  # more than a batch takes, while compiled turns go on
    confirmations = [(1 + order_id, encode(Confirmation(order_id))) for order_id in range(1, ORDERS + 1)]
    answers = sorted([*quotes, *confirmations], key=lambda frame: frame[0])
    frames = [(1, hello), *answers, (2 + ORDERS, encode(End(1, 2, 3, 4)))]
    script = EngineScript(frames, step=len(frames), room=20, lends=True)

    result, _ = session(script, packing=1, orders_per_s=200.0)

    assert result.quotes == 5000
    assert script.numbers[SLEPT_TOO_EARLY] == 0
