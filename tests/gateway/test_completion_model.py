"""Completion times: the compiled pairing of answers with orders, against a dictionary and lists."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from completion_times import FOREIGN, START_NS, assert_holds, due_times
from hypothesis import given
from hypothesis import strategies as st

from exchange.measurements import CLOCKS
from exchange.messages import (
    LAYOUTS,
    Cancelled,
    Confirmation,
    MalformedMessage,
    Quote,
    Rejection,
    Replaced,
    Trade,
    decode_all,
    encode,
)
from gateway.completion import Completion
from transports.frames import FrameBatch

ORDER_ANSWERS = (Trade, Confirmation, Rejection, Cancelled, Replaced)
ANSWERS = (*ORDER_ANSWERS, Quote)


class Model:
    """Completion times as plainly as possible: a dictionary of waiting orders, and a list of times for each clock."""

    def __init__(self, period_ns: float, sampling_interval: int, last_id: int) -> None:
        self.period_ns = period_ns
        self.interval = sampling_interval
        self.last_id = last_id
        self.newest = 0
        self.answered = 0
        self.waiting: dict[int, int] = {}
        self.by_type: Counter[int] = Counter()
        self.times_ns: dict[tuple[bool, str], list[int]] = defaultdict(list)

    def handed_over(self, count: int, now_ns: int) -> None:
        self.waiting.update(dict.fromkeys(range(self.newest + 1, self.newest + count + 1), now_ns))
        self.newest += count

    def take(self, frames: list[bytes], first: int, now_ns: int) -> tuple[int, list[list[int]]]:
        sampled: list[list[int]] = []
        for index in range(first, len(frames)):
            messages = answers_in(frames[index])
            if not messages:
                return index, sampled
            for message in messages:
                self.by_type[LAYOUTS[type(message)].code] += 1
                if isinstance(message, ORDER_ANSWERS) and message.id in self.waiting:
                    handed_ns = self._answer(message.id, now_ns)
                    if message.id % self.interval == 0:
                        received = self.by_type.total()
                        sampled.append([message.id, handed_ns, self._due_ns(message.id), now_ns, received])
        return len(frames), sampled

    def _answer(self, order_id: int, now_ns: int) -> int:
        handed_ns = self.waiting.pop(order_id)
        last = order_id == self.last_id
        self.answered += 1
        self.times_ns[last, "handed_over"].append(now_ns - handed_ns)
        if self.period_ns:
            due_ns = self._due_ns(order_id)
            self.times_ns[last, "due"].append(now_ns - due_ns)
            self.times_ns[last, "lag"].append(max(handed_ns - due_ns, 0))
        return handed_ns

    def _due_ns(self, order_id: int) -> int:
        """When the order was due; 0 without a schedule."""
        return int(due_times(order_id, 1, self.period_ns)[0]) if self.period_ns else 0

    def close_second(self, last: bool) -> list[tuple[str, list[int]]]:
        """Return the times since the last call, by clock; without the clocks that have none."""
        closed = []
        for clock in CLOCKS:
            times = self.times_ns.pop((last, clock), [])
            if times:
                closed.append((clock, times))
        return closed


def answers_in(frame: bytes) -> list:
    """Return the answers in a frame; an empty list if the frame is foreign."""
    try:
        messages = list(decode_all(frame))
    except MalformedMessage:
        return []
    if all(isinstance(message, ANSWERS) for message in messages):
        return messages
    return []


SMALL_IDS = st.integers(0, 120)
SAME_SLOT_IDS = st.builds(lambda small, bit: small + 2**bit, SMALL_IDS, st.sampled_from([7, 8, 16, 24, 31]))
"""Ids that share their low bits, and so their slot in the table, with a small id."""
IDS = st.one_of(SMALL_IDS, SMALL_IDS, SAME_SLOT_IDS, st.just(2**32 - 1))
VALUES = st.integers(0, 2**16 - 1)
ANSWER = st.one_of(
    st.builds(Trade, IDS, VALUES, VALUES),
    st.builds(Confirmation, IDS),
    st.builds(Rejection, IDS, st.integers(1, 6)),
    st.builds(Quote, bid=VALUES, ask=VALUES),
    st.builds(Cancelled, IDS, VALUES),
    st.builds(Replaced, IDS, VALUES, VALUES),
)
FRAME = st.lists(ANSWER, min_size=1, max_size=6).map(lambda pack: b"".join(map(encode, pack)))
STEP = st.one_of(
    st.tuples(st.just("hand over"), st.integers(1, 40)),
    st.tuples(st.just("answer"), st.lists(FRAME | st.sampled_from(FOREIGN), max_size=8)),
    st.tuples(st.just("close second"), st.booleans()),
)


@given(
    steps=st.lists(STEP, max_size=25),
    gaps_ns=st.lists(st.integers(400, 10**12), min_size=1, max_size=25),
    period_ns=st.sampled_from([0.0, 1.0, 7.3]),
    sampling_interval=st.integers(1, 10),
    last_id=st.integers(0, 120),
)
def test_any_traffic_is_counted_as_by_the_model(steps, gaps_ns, period_ns, sampling_interval, last_id):
    model = Model(period_ns, sampling_interval, last_id)
    completion = Completion(scheduled=period_ns > 0, sampling_interval=sampling_interval, capacity=4)
    completion.last_id = last_id
    now_ns = START_NS
    steps = [*steps, ("close second", False), ("close second", True)]
    for number, (step, argument) in enumerate(steps):
        now_ns += gaps_ns[number % len(gaps_ns)]
        if step == "hand over":
            model.handed_over(argument, now_ns)
            completion.handed_over(argument, now_ns, due_times(completion.newest + 1, argument, period_ns))
        elif step == "answer":
            assert_takes_like_the_model(completion, model, argument, now_ns)
        else:
            assert_closes_like_the_model(completion, model, last=argument)
        assert completion.newest == model.newest
        assert completion.answered == model.answered
        by_type = completion.tables.by_type
        assert {int(kind): by_type[kind] for kind in np.flatnonzero(by_type)} == model.by_type


def assert_closes_like_the_model(completion: Completion, model: Model, last: bool) -> None:
    closed = dict(completion.close_second(last))
    expected = dict(model.close_second(last))
    assert list(closed) == list(expected)
    for clock, times_ns in expected.items():
        assert_holds(closed[clock], times_ns)


def assert_takes_like_the_model(completion: Completion, model: Model, frames: list[bytes], now_ns: int) -> None:
    """Let both take the batch, on from each foreign frame, and compare what they return."""
    batch = FrameBatch.of(*frames)
    first = 0
    while first < len(frames):
        stopped_at, sampled = completion.take(batch, first, now_ns)
        assert (stopped_at, sampled.tolist()) == model.take(frames, first, now_ns)
        first = stopped_at + 1
