"""A component's reports, as a link's outbox would get them."""

from __future__ import annotations

import time

import orjson
import pytest

from exchange.measurements import NS_PER_S, Source
from exchange.messages import End, Hello, Statistics, Throughput, decode
from exchange.results import ResourceUsage
from exchange.session import Reporting, Terms

TERMS = Terms(run=5, policy="price-time", packing=1, max_price=999)


class Drawer:
    """A sink that keeps what it is given; its checksum is a stand-in."""

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
        return [decode(frame) for frame, _ in self.frames]

    @property
    def records(self):
        return [orjson.loads(m.document) for m in self.messages if isinstance(m, Statistics)]


@pytest.fixture
def drawer():
    return Drawer()


class Spent:
    """Stands in for what the system says that this process has used."""

    def __init__(self) -> None:
        self.cpu_s = 100

    def now(self, thread_only: bool = False) -> ResourceUsage:
        return ResourceUsage(cpu_ns=self.cpu_s * NS_PER_S, voluntary=10 * self.cpu_s, involuntary=self.cpu_s)


@pytest.fixture
def spent(monkeypatch):
    spent = Spent()
    monkeypatch.setattr(ResourceUsage, "now", spent.now)
    return spent


def test_a_hello_opens_the_flow_and_counts_as_no_message(drawer):
    Reporting(drawer, TERMS, Source.ENGINE)
    [(frame, counted)] = drawer.frames
    hello = decode(frame)
    assert isinstance(hello, Hello)
    assert (hello.run, hello.source, counted) == (5, Source.ENGINE, False)


def test_the_end_counts_all_but_hello_and_end(drawer):
    reporting = Reporting(drawer, TERMS, Source.GATEWAY)
    reporting.start(0)
    reporting.message(Throughput(1, 8000))
    reporting.record("traffic", {"second": 0})
    reporting.close({"stopped": None})
    *before, (last, last_counted) = drawer.frames
    assert [counted for _, counted in before] == [False, True, True, True]
    assert (decode(last), last_counted) == (End(3, 3000, 0, 0), False)


def test_the_result_is_the_last_record(drawer):
    reporting = Reporting(drawer, TERMS, Source.GATEWAY)
    reporting.record("traffic", {})
    reporting.close({"orders_answered": 7})
    last = drawer.records[-1]
    assert (last["kind"], last["source"], last["run"]) == ("result", "gateway", f"{5:016x}")
    assert last["payload"] == {"orders_answered": 7}


def test_seconds_count_from_the_start_and_a_pause_skips_some(drawer):
    reporting = Reporting(drawer, TERMS, Source.GATEWAY)
    start_ns = 123_456_789
    reporting.start(start_ns)
    assert (reporting.second, reporting.next_second_ns) == (0, start_ns + NS_PER_S)
    reporting.next_second(start_ns + NS_PER_S)
    assert (reporting.second, reporting.next_second_ns) == (1, start_ns + 2 * NS_PER_S)
    reporting.next_second(start_ns + 5 * NS_PER_S - 1)
    assert (reporting.second, reporting.next_second_ns) == (4, start_ns + 5 * NS_PER_S)
    reporting.write_all()
    assert [record["payload"]["second"] for record in drawer.records] == [0, 1]


def test_records_of_a_second_carry_the_time_of_its_end(drawer):
    """They are written one by one."""
    reporting = Reporting(drawer, TERMS, Source.GATEWAY)
    reporting.start(0)
    reporting.record_later("traffic", lambda: {"second": 0})
    reporting.next_second(NS_PER_S)
    read_ns = time.monotonic_ns()
    assert reporting.write_next(NS_PER_S)
    assert drawer.records == []  # not in the turn that closes the second
    for kinds in (["traffic"], ["traffic", "process"]):
        now_ns = reporting.next_ns
        assert NS_PER_S < now_ns < 2 * NS_PER_S
        assert reporting.write_next(now_ns)
        assert reporting.write_next(now_ns + 1)  # too early for another, and to send them
        assert [record["kind"] for record in drawer.records] == kinds
    assert not reporting.write_next(reporting.next_ns)  # they are to be sent
    assert reporting.next_ns == 2 * NS_PER_S
    assert max(record["monotonic_ns"] for record in drawer.records) < read_ns


def test_a_record_that_may_not_wait_comes_after_those_that_wait(drawer):
    reporting = Reporting(drawer, TERMS, Source.GATEWAY)
    reporting.start(0)
    reporting.next_second(NS_PER_S)
    reporting.record("result", {})
    assert [record["kind"] for record in drawer.records] == ["process", "result"]


def test_usage_counts_from_start_to_stop(drawer, spent):
    reporting = Reporting(drawer, TERMS, Source.GATEWAY)
    spent.cpu_s = 130  # warming up
    reporting.start(0)
    spent.cpu_s = 131
    reporting.next_second(NS_PER_S)
    spent.cpu_s = 132
    reporting.stop()
    spent.cpu_s = 190  # closing
    reporting.close({})
    usage = reporting.usage()
    assert (usage["cpu_s"], usage["voluntary_context_switches"], usage["involuntary_context_switches"]) == (2.0, 20, 2)
    assert usage["max_rss_bytes"] > 1 << 20
    processes = [record["payload"] for record in drawer.records if record["kind"] == "process"]
    assert [(process["second"], process["cpu_s"]) for process in processes] == [(0, 1.0), (1, 2.0)]
    assert set(processes[0]) == {"second", *usage}


def test_cpu_of_this_process_never_runs_backwards():
    start = ResourceUsage.now()
    sum(range(100_000))
    usage = ResourceUsage.now().since(start)
    assert usage["cpu_s"] > 0
    assert usage["voluntary_context_switches"] >= 0


def test_a_threads_own_usage_is_no_more_than_the_processs():
    assert ResourceUsage.now(thread_only=True).cpu_ns <= ResourceUsage.now().cpu_ns
