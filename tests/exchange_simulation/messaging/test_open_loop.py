"""`--rate`: messages go when they are due, whatever became of earlier ones; their time is from due."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from exchange_simulation.messaging import flow
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.flow import Consume, Lags, OpenLoop
from exchange_simulation.messaging.payload import MessageSource
from exchange_simulation.messaging.roles import RoleResult
from tests.exchange_command import exchange_in_process
from transports.frames import FrameBatch

MS = 1_000_000


class Stuck:
    """A clock, a session and its link: message 4 of 10 finds no room for 5 ms."""

    def __init__(self) -> None:
        self.now_ns, self.link = 7 * MS, self
        self.stamps: list[int] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def send(self, _link: object, batch: FrameBatch, first: int) -> int:
        if len(self.stamps) == 3 and self.now_ns < 15 * MS:
            return first
        sent = [bytes(batch[frame]) for frame in range(first, batch.count)]
        self.stamps += [int.from_bytes(frame[8:16], "little") for frame in sent]
        return batch.count

    def wait(self, *_: object, readable: bool = True, writable: bool = False) -> None:
        """A wait for room takes a millisecond; one for a due time is as long as it says."""
        self.now_ns = self.now_ns + MS if writable else max(self.now_ns, int(_[0]))  # type: ignore[call-overload]

    def progressed(self) -> None: ...


def test_a_link_without_room_moves_no_due_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, result = Stuck(), RoleResult()
    monkeypatch.setattr(flow, "time", stuck)
    OpenLoop(MessageSource(16), 10, 1000.0).publish(stuck, result)  # type: ignore[arg-type]
    assert stuck.stamps == [7 * MS + number * MS for number in range(10)]
    lag = result.details["lag"]
    assert (lag.count, lag.min_ns, lag.max_ns) == (10, 0, 5 * MS)
    assert lag.sum_ns == (5 + 4 + 3 + 2 + 1) * MS
    assert result.details["given_s"] == pytest.approx(0.009)
    assert result.details["taken_s"] == pytest.approx(0.009)


def test_lags_are_counted_however_many_there_are() -> None:
    lags = Lags()
    for _ in range(100):
        lags.add(np.full(4096, 5, np.int64))
    assert (lags.all().count, lags.all().max_ns) == (409_600, 5)


def results_of(publisher: RoleResult, consumer: RoleResult) -> dict[str, RoleResult]:
    return {"publisher": publisher, "consumer": consumer}


def test_a_rate_that_was_not_kept_is_said() -> None:
    bench, cell = benchmark_of("de-spsc"), Cell("memory", {"size_bytes": 64, "rate_per_s": 1000}, {})
    lags = Lags()
    lags.add(np.full(1000, 50_000, np.int64))
    kept = RoleResult(sent=1000, details={"lag": lags.all(), "given_s": 0.999, "taken_s": 0.999})
    came = RoleResult(received=1000, last_ns=1_000 * MS, details={"last_quarter": [(750, 750 * MS), (900, 900 * MS)]})
    assert bench.saturation_reasons(cell, results_of(kept, came)) == []
    slow = replace(kept, details={**kept.details, "taken_s": 1.998})
    assert bench.saturation_reasons(cell, results_of(slow, came)) == ["500 of 1,000 offered messages/s were achieved"]
    late = replace(came, details={"last_quarter": [(750, 750 * MS), (900, 1_400 * MS)]})
    assert bench.saturation_reasons(cell, results_of(kept, late)) == [
        "undelivered messages were still growing at the end, by 500 in the last quarter"
    ]
    flood = replace(cell, point={"size_bytes": 64, "rate_per_s": "max"})
    assert bench.saturation_reasons(flood, results_of(slow, late)) == []


class HeldUp:
    """A session whose messages come ten at a time, each after a millisecond; a buffer holds the last ten for 400 ms."""

    def __init__(self, count: int) -> None:
        self._source, self._count, self.link = MessageSource(16), count, self
        self.junk, self.send_all = 0, lambda *_: None

    def receive(self, _link: object, batch: FrameBatch | None = None, _why: str = "") -> int:
        if batch is None:  # the link itself is asked for more than was expected
            return 0
        self._source.fill(min(10, batch.capacity_frames), 1)
        for frame in self._source.batch:
            batch.append(frame)
        return MS * self._source.count + 400 * MS * (self._source.count >= self._count)


def test_a_tail_that_a_buffer_holds_is_no_growing_backlog() -> None:
    """At 8,000 messages/s over a broker with Nagle's algorithm on, a p99 of 2 ms was called saturated."""
    result = Consume(16, 1_001)(HeldUp(1_001))  # type: ignore[arg-type]
    assert result.last_ns == 1_401 * MS
    assert result.details["last_quarter"] == [(751, 751 * MS), (901, 901 * MS)]


def test_each_point_is_at_each_rate_and_its_time_is_from_due(tmp_path: Path) -> None:
    words = ("--transport", "zeromq+inproc", "--sizes", 64, "--rate", "2000,max", "--quick", "--repeats", 1)
    said = exchange_in_process("bench", "fe-spmc", "--consumers", 2, *words, "--results", tmp_path, "--json")
    assert said.code == 0, said.err
    paced, flood = said.record["rows"]
    assert (paced["words"], flood["words"]) == (
        "zeromq+inproc, 64 B, 2 consumers, 2,000/s",
        "zeromq+inproc, 64 B, 2 consumers, as fast as it goes",
    )
    assert {"due_p99_us", "lag_p99_us"} <= paced["figures"].keys()
    assert not any(name.startswith("latency") for name in paced["figures"])
    assert "latency_p50_us" in flood["figures"]
    (repeat,) = paced["repeats"]
    assert repeat["roles"]["publisher"]["details"]["lag"]["count"] == 2000
    assert repeat["roles"]["publisher"]["details"]["given_s"] == pytest.approx(1999 / 2000)
