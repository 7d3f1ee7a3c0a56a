"""`--rate`: a message is sent when it is due, also if earlier ones are late; latency counts from the due time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exchange_simulation.messaging import flow
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.flow import Consume, Lags, OpenLoop
from exchange_simulation.messaging.message_load import MessageLoad
from exchange_simulation.messaging.payload import MessageSource
from exchange_simulation.messaging.roles import RoleResult
from tests.exchange_command import exchange_in_process
from transports.frames import FrameBatch

MS = 1_000_000


class BlockedLink:
    """A clock, a session and its link in one: message 4 of 10 finds no room for 5 ms."""

    def __init__(self) -> None:
        self.now_ns = 7 * MS
        self.link = self
        self.stamps: list[int] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def send(self, _link: object, batch: FrameBatch, first: int) -> int:
        if len(self.stamps) == 3 and self.now_ns < 15 * MS:
            return first
        sent = [bytes(batch[frame]) for frame in range(first, batch.count)]
        self.stamps += [int.from_bytes(frame[8:16], "little") for frame in sent]
        return batch.count

    def wait(self, *arguments: Any, readable: bool = True, writable: bool = False) -> None:
        """A wait for room takes a millisecond; a wait for a due time ends at that time, the first argument."""
        if writable:
            self.now_ns += MS
        else:
            self.now_ns = max(self.now_ns, int(arguments[0]))

    def progressed(self) -> None: ...


def test_a_link_without_room_moves_no_due_time(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = BlockedLink()
    result = RoleResult()
    monkeypatch.setattr(flow, "time", blocked)

    OpenLoop(MessageSource(16), 10, MessageLoad.steady(1000.0, 10)).publish(blocked, result)  # type: ignore[arg-type]

    assert blocked.stamps == [7 * MS + number * MS for number in range(10)]
    lag = result.details["lag"]
    assert lag.count == 10
    assert lag.min_ns == 0
    assert lag.max_ns == 5 * MS
    assert lag.sum_ns == (5 + 4 + 3 + 2 + 1) * MS
    assert result.details["given_s"] == pytest.approx(0.009)
    assert result.details["taken_s"] == pytest.approx(0.009)


def test_more_lags_than_the_buffer_holds_are_counted() -> None:
    lags = Lags()
    for _ in range(100):
        lags.add(np.full(4096, 5, np.int64))
    assert lags.all().count == 409_600
    assert lags.all().max_ns == 5


def publisher_that_sent_for(sent_s: float) -> RoleResult:
    """A publisher whose 1,000 messages were due within 0.999 s, and were sent within `sent_s`."""
    lags = Lags()
    lags.add(np.full(1000, 50_000, np.int64))
    details = {"lag": lags.all(), "load": "1000", "started_ns": 0, "given_s": 0.999, "taken_s": sent_s}
    return RoleResult(sent=1000, details=details)


def consumer_that_has_900_messages_after(late_ms: int) -> RoleResult:
    """A consumer that has 750 messages after 750 ms, 900 messages after `late_ms`, and all 1,000 after 100 ms more."""
    last_quarter = [(750, 750 * MS), (900, late_ms * MS)]
    return RoleResult(received=1000, last_ns=(late_ms + 100) * MS, details={"last_quarter": last_quarter})


def saturation_reasons(publisher: RoleResult, consumer: RoleResult, rate: object = 1000) -> list[str]:
    cell = Cell("memory", {"size_bytes": 64, "rate_per_s": rate}, {})
    return benchmark_of("de-spsc").saturation_reasons(cell, {"publisher": publisher, "consumer": consumer})


IN_TIME = publisher_that_sent_for(0.999)
TOO_SLOW = publisher_that_sent_for(1.998)
KEEPS_UP = consumer_that_has_900_messages_after(900)
FALLS_BEHIND = consumer_that_has_900_messages_after(1_400)


def test_a_rate_that_was_kept_has_no_reason() -> None:
    assert saturation_reasons(IN_TIME, KEEPS_UP) == []


def test_a_publisher_that_did_not_keep_its_rate_is_a_reason() -> None:
    assert saturation_reasons(TOO_SLOW, KEEPS_UP) == ["500 of 1,000 offered messages/s were achieved"]


def test_a_growing_backlog_is_a_reason() -> None:
    assert saturation_reasons(IN_TIME, FALLS_BEHIND) == [
        "undelivered messages were still growing at the end, by 500 in the last quarter"
    ]


def test_a_flood_is_never_saturated() -> None:
    assert saturation_reasons(TOO_SLOW, FALLS_BEHIND, rate="max") == []


class EmptyLink:
    """A link on which no further message has come."""

    junk = 0

    def receive(self, _batch: FrameBatch) -> int:
        return 0


class SessionWithHeldTail:
    """A session whose messages come ten at a time, each after a millisecond; a buffer holds the last ten for 400 ms."""

    clock_ahead_ns = 0

    def __init__(self, count: int) -> None:
        self._source = MessageSource(16)
        self._count = count
        self.link = EmptyLink()

    def send_all(self, *_: object) -> None: ...

    def receive(self, _link: object, batch: FrameBatch, _problem: str) -> int:
        """Return the time at which the batch came, ns."""
        self._source.fill(min(10, batch.capacity_frames), 1)
        for frame in self._source.batch:
            batch.append(frame)
        came_ns = MS * self._source.count
        if self._source.count >= self._count:
            came_ns += 400 * MS
        return came_ns


def test_a_tail_that_a_buffer_holds_is_no_growing_backlog() -> None:
    """Regression: with Nagle's algorithm on, a run with a p99 of 2 ms was called saturated."""
    result = Consume(16, 1_001)(SessionWithHeldTail(1_001))  # type: ignore[arg-type]
    assert result.last_ns == 1_401 * MS
    # The first message comes alone, then ten at a time: a batch ends at 751 (750 is three quarters) and at 901.
    assert result.details["last_quarter"] == [(751, 751 * MS), (901, 901 * MS)]


def test_each_point_is_measured_at_each_rate_from_due(tmp_path: Path) -> None:
    words = ("--transport", "zeromq+inproc", "--sizes", 64, "--rate", "2000,max", "--quick", "--repeats", 1)
    finished = exchange_in_process("bench", "fe-spmc", "--consumers", 2, *words, "--results", tmp_path, "--json")
    assert finished.code == 0, finished.err
    paced, flood = finished.record["rows"]
    assert paced["words"] == "zeromq+inproc, 64 B, 2 consumers, 2,000/s"
    assert flood["words"] == "zeromq+inproc, 64 B, 2 consumers, as fast as it goes"
    assert {"due_p99_us", "lag_p99_us"} <= paced["figures"].keys()
    assert not any(name.startswith("latency") for name in paced["figures"])
    assert "latency_p50_us" in flood["figures"]
    (repeat,) = paced["repeats"]
    assert repeat["roles"]["publisher"]["details"]["lag"]["count"] == 2000
    assert repeat["roles"]["publisher"]["details"]["given_s"] == pytest.approx(1999 / 2000)
