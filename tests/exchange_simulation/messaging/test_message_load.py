"""The load of a publisher: how many messages, when they are due, and in which step of the load each is counted."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as some

from exchange.load_shape import LoadSegment, LoadShape
from exchange.measurements import LogBuckets
from exchange_simulation.launching.hosts.clock_offset import ClockOffset
from exchange_simulation.messaging.cell import Cell, least_duration_s
from exchange_simulation.messaging.flow import Lags
from exchange_simulation.messaging.hosts.role_clocks import RoleClocks
from exchange_simulation.messaging.hosts.role_messages import plain_word, word_of
from exchange_simulation.messaging.message_load import MessageLoad
from exchange_simulation.messaging.payload import MessageSource, Receipt
from exchange_simulation.messaging.roles import CONSUMER, PUBLISHER, ReceivedPart, Role, RoleResult
from transports.frames import FrameBatch, Longs

STEPS = "1000@1s,4000@500ms,500@2s"


def load_of(text: str, count: int | None = None) -> MessageLoad:
    """The load of a cell at the rate."""
    load = Cell("memory", {"size_bytes": 64, "rate_per_s": text}, {"count": count}).load
    assert load is not None
    return load


def due_s(load: MessageLoad) -> npt.NDArray[np.float64]:
    due: Longs = np.zeros(load.messages, np.int64)
    load.due_times().write(due, 0)
    return due / 1e9


def test_a_load_has_the_messages_of_its_steps() -> None:
    load = load_of(STEPS)
    assert load.messages == 1000 + 2000 + 1000
    assert [(step.messages.first, step.messages.end) for step in load.steps] == [(0, 1000), (1000, 3000), (3000, 4000)]
    assert load.length_s == pytest.approx(3.5)


def test_a_message_is_due_in_the_step_in_which_it_is_counted() -> None:
    due = due_s(load_of(STEPS))
    assert due[999] < 1.0 <= due[1000] < due[2999] < 1.5 <= due[3000]


def test_a_count_ends_a_load_early_and_never_makes_it_longer() -> None:
    load = load_of(STEPS, count=2_000)
    assert load.messages == 2_000
    assert load.length_s == pytest.approx(1.25)
    assert [step.segment.typed for step in load.steps] == ["1000@1s", "4000@0.25s"]
    assert load_of(STEPS, count=9_000).messages == 4_000


def test_one_rate_has_no_steps() -> None:
    load = Cell("memory", {"size_bytes": 64, "rate_per_s": 2000}, {"seconds": 3}).load
    assert load is not None
    assert (load.messages, load.steps, load.length_s) == (6_000, [], 3.0)


@given(
    some.lists(
        some.tuples(some.integers(100, 9_000), some.integers(100, 9_000), some.floats(0.05, 1.0)),
        min_size=1,
        max_size=5,
    ),
    some.floats(0, 1.5),
)
def test_what_came_and_when_are_inverse_to_each_other(segments: list[tuple[int, int, float]], share: float) -> None:
    shape = LoadShape(tuple(LoadSegment(first, last, seconds) for first, last, seconds in segments))
    seconds = share * shape.length_s
    assert shape.seconds_until(shape.amount_after(seconds)) == pytest.approx(seconds, abs=1e-6)
    load = MessageLoad.over_time(shape)
    middle = load.messages // 2
    due_of_middle = float(due_s(load)[middle])
    assert shape.amount_after(due_of_middle) == pytest.approx(middle, abs=1e-3)


def test_the_last_rate_goes_on_for_a_consumer_that_is_late() -> None:
    load = load_of("1000@1s,8000@1s")
    assert load.due_between(0.5, 1.5) == pytest.approx(500 + 4000)
    assert load.due_between(2.0, 3.0) == pytest.approx(8000)


@pytest.mark.parametrize("size", [4, 8, 16, 64])
def test_messages_are_counted_by_step_also_if_a_batch_has_those_of_several(size: int) -> None:
    load = load_of("1000@10ms,2000@10ms,500@20ms")  # 10, 20 and 10 messages
    source = MessageSource(size)
    receipt = Receipt(size, bounds=load.step_bounds)
    for come, came_ns in ((15, 100), (18, 200), (7, 300)):
        source.fill(come, 1)
        receipt.add(FrameBatch.of(*source.batch), came_ns)
    parts = [receipt.part_of(step.messages) for step in load.steps]
    assert [part.received for part in parts] == [10, 20, 10]
    assert [(part.first_ns, part.last_ns) for part in parts] == [(100, 100), (100, 200), (200, 300)]
    has_stamps = size >= 16
    assert [part.latency.count for part in parts] == ([10, 20, 10] if has_stamps else [0, 0, 0])
    assert (receipt.received, receipt.checksum, receipt.wrong) == (40, source.checksum, {})


def test_messages_of_several_publishers_are_counted_by_their_own_numbers() -> None:
    load = load_of("1000@10ms,2000@10ms")
    receipt = Receipt(16, 2, bounds=load.step_bounds)
    first = MessageSource(16, 0)
    second = MessageSource(16, 1)
    first.fill(12, 1)
    second.fill(8, 1)
    of_first = list(first.batch)
    receipt.add(FrameBatch.of(*of_first[:5], *second.batch, *of_first[5:]), 100)
    assert [receipt.part_of(step.messages).received for step in load.steps] == [10 + 8, 2]
    assert receipt.wrong == {}


def test_lags_are_counted_by_step() -> None:
    lags = Lags((10, 30))
    for first in range(0, 40, 8):
        lags.add(np.arange(first, first + 8), first)
    assert [(lag.min_ns, lag.max_ns, lag.count) for lag in lags.by_step()] == [(0, 9, 10), (10, 29, 20), (30, 39, 10)]
    assert lags.all().count == 40


def test_what_came_of_each_step_returns_from_another_host_by_the_launcher_s_clock() -> None:
    part = ReceivedPart(3, first_ns=1_000, last_ns=5_000, latency=LogBuckets.of(np.array([40, 50, 60], np.int64)))
    result = RoleResult(details={"steps": [part], "last_quarter": [(2, 3_000)], "started_ns": 900})
    word = ("result", result)
    _, returned = word_of(json.loads(json.dumps(plain_word(word))))
    (returned_part,) = returned.details["steps"]
    assert (returned_part.received, returned_part.first_ns, returned_part.last_ns) == (3, 1_000, 5_000)
    assert returned_part.latency.figures_us() == part.latency.figures_us()
    ahead = ClockOffset(low_ns=100, high_ns=100)
    clocks = RoleClocks({PUBLISHER: ClockOffset(low_ns=0, high_ns=0), CONSUMER: ahead}, is_one_clock=False)
    role = Role("consumer", lambda _session: result, ())
    details = clocks.by_launchers_clock(role, returned).details
    assert (details["steps"][0].first_ns, details["steps"][0].last_ns) == (900, 4_900)
    assert details["last_quarter"] == [(2, 2_900)]
    assert details["started_ns"] == 800


@pytest.mark.parametrize(
    ("rate", "seconds", "messages"), [(2.0, 5.0, 10), (0.1, 5.0, 2), (1000.0, 5.0, 5000), (2.0, None, 100)]
)
def test_messages_are_offered_for_the_seconds_that_a_user_typed(
    rate: float, seconds: float | None, messages: int
) -> None:
    """Regression: `--rate 2 --seconds 5` took 50 s, for 100 messages, which only the default is to have."""
    cell = Cell("memory", {"size_bytes": 64, "rate_per_s": rate}, {"seconds": seconds})
    assert cell.load is not None
    assert cell.load.messages == messages
    assert least_duration_s(cell) == pytest.approx(messages / rate, rel=0.2)
