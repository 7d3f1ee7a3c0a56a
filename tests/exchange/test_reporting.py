"""A component's reports: the frames that it posts to the outbox of its link."""

from __future__ import annotations

import time

import orjson
import pytest

from exchange.measurements import NS_PER_S
from exchange.messages import End, Hello, Statistics, Throughput, decode
from exchange.meters import Source
from exchange.results import ResourceUsage
from exchange.session import Reporting, Terms

TERMS = Terms(run=5, policy="price-time", packing=1, max_price=999)


class FrameList:
    """Stands in for an outbox: keeps the posted frames. Its checksum grows by 1000 with each counted frame."""

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, bool]] = []
        self.posted = 0
        self.checksum = 0

    def post(self, frame: bytes, counted: bool = True) -> None:
        self.frames.append((frame, counted))
        if counted:
            self.posted += 1
            self.checksum += 1000

    @property
    def messages(self):
        """The messages that were posted."""
        return [decode(frame) for frame, _ in self.frames]

    @property
    def records(self):
        """The statistics records that were posted."""
        return [orjson.loads(message.document) for message in self.messages if isinstance(message, Statistics)]


@pytest.fixture
def outbox():
    return FrameList()


class ScriptedUsage:
    """Stands in for the resource usage of this process."""

    def __init__(self) -> None:
        self.cpu_s = 100

    def now(self, thread_only: bool = False) -> ResourceUsage:
        return ResourceUsage(cpu_ns=self.cpu_s * NS_PER_S, voluntary=10 * self.cpu_s, involuntary=self.cpu_s)


@pytest.fixture
def used(monkeypatch):
    used = ScriptedUsage()
    monkeypatch.setattr(ResourceUsage, "now", used.now)
    return used


def test_a_hello_comes_first_and_is_not_counted(outbox):
    Reporting(outbox, TERMS, Source.ENGINE)
    [(frame, counted)] = outbox.frames
    hello = decode(frame)
    assert isinstance(hello, Hello)
    assert hello.run == 5
    assert hello.source == Source.ENGINE
    assert not counted


def test_the_end_counts_every_frame_except_hello_and_end(outbox):
    reporting = Reporting(outbox, TERMS, Source.GATEWAY)
    reporting.start(0)
    reporting.message(Throughput(1, 8000))
    reporting.record("traffic", {"second": 0})
    reporting.close({"stopped": None})
    *before, (last, last_counted) = outbox.frames
    assert [counted for _, counted in before] == [False, True, True, True]
    assert decode(last) == End(sent=3, sent_checksum=3000, received=0, received_checksum=0)
    assert not last_counted


def test_the_result_is_the_last_record(outbox):
    reporting = Reporting(outbox, TERMS, Source.GATEWAY)
    reporting.record("traffic", {})
    reporting.close({"orders_answered": 7})
    last = outbox.records[-1]
    assert last["kind"] == "result"
    assert last["source"] == "gateway"
    assert last["run"] == f"{5:016x}"
    assert last["payload"] == {"orders_answered": 7}


def test_seconds_count_from_the_start_and_a_pause_skips_seconds(outbox):
    reporting = Reporting(outbox, TERMS, Source.GATEWAY)
    start_ns = 123_456_789
    reporting.start(start_ns)
    assert reporting.second == 0
    assert reporting.next_second_ns == start_ns + NS_PER_S
    reporting.next_second(start_ns + NS_PER_S)
    assert reporting.second == 1
    assert reporting.next_second_ns == start_ns + 2 * NS_PER_S
    reporting.next_second(start_ns + 5 * NS_PER_S - 1)
    assert reporting.second == 4
    assert reporting.next_second_ns == start_ns + 5 * NS_PER_S
    reporting.write_all()
    assert [record["payload"]["second"] for record in outbox.records] == [0, 1]


def test_records_of_a_second_are_written_one_by_one_with_its_end_time(outbox):
    reporting = Reporting(outbox, TERMS, Source.GATEWAY)
    reporting.start(0)
    reporting.record_later("traffic", lambda: {"second": 0})
    reporting.next_second(NS_PER_S)
    read_ns = time.monotonic_ns()
    assert reporting.write_next(NS_PER_S)
    assert outbox.records == [], "no record is written in the turn that ends the second"
    for kinds in (["traffic"], ["traffic", "process"]):
        now_ns = reporting.next_ns
        assert NS_PER_S < now_ns < 2 * NS_PER_S
        assert reporting.write_next(now_ns)
        assert reporting.write_next(now_ns + 1), "too early for the next record, and for sending"
        assert [record["kind"] for record in outbox.records] == kinds
    assert not reporting.write_next(reporting.next_ns), "all are written, and can be sent"
    assert reporting.next_ns == 2 * NS_PER_S
    assert max(record["monotonic_ns"] for record in outbox.records) < read_ns


def test_an_immediate_record_comes_after_the_waiting_records(outbox):
    reporting = Reporting(outbox, TERMS, Source.GATEWAY)
    reporting.start(0)
    reporting.next_second(NS_PER_S)
    reporting.record("result", {})
    assert [record["kind"] for record in outbox.records] == ["process", "result"]


def test_usage_counts_from_start_to_stop(outbox, used):
    reporting = Reporting(outbox, TERMS, Source.GATEWAY)
    used.cpu_s = 130  # warming up
    reporting.start(0)
    used.cpu_s = 131
    reporting.next_second(NS_PER_S)
    used.cpu_s = 132
    reporting.stop()
    used.cpu_s = 190  # closing
    reporting.close({})
    usage = reporting.usage()
    assert usage["cpu_s"] == 2.0
    assert usage["voluntary_context_switches"] == 20
    assert usage["involuntary_context_switches"] == 2
    assert usage["max_rss_bytes"] > 1 << 20
    processes = [record["payload"] for record in outbox.records if record["kind"] == "process"]
    assert [(process["second"], process["cpu_s"]) for process in processes] == [(0, 1.0), (1, 2.0)]
    assert set(processes[0]) == {"second", "rss_bytes", *usage}
    assert processes[0]["rss_bytes"] > 1 << 20


def test_the_usage_of_this_process_grows():
    start = ResourceUsage.now()
    sum(range(100_000))
    usage = ResourceUsage.now().since(start)
    assert usage["cpu_s"] > 0
    assert usage["voluntary_context_switches"] >= 0


def test_a_thread_uses_no_more_than_its_process():
    assert ResourceUsage.now(thread_only=True).cpu_ns <= ResourceUsage.now().cpu_ns
