"""A reporter that is killed, and another one that goes on with its sources: over TCP, in one process.

A reporter whose spool may not be finished is as good as killed: nothing but its files is left of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reporter_session import COMPLETION, RUN, TERMS, TIMEOUT_S, TRAFFIC

from exchange.measurements import Meter, Source
from exchange.messages import Throughput, Timestamp
from exchange.records import SAMPLE, SESSION, THROUGHPUT
from exchange.results import ReporterResult
from exchange.session import Reporting
from exchange_simulation.launching.record.reading import records
from stats_reporter.recovering.reporter import ReplaceableReporter
from stats_reporter.recovering.source_link import SourceLink
from stats_reporter.recovering.spool import ReplaceableSpool
from tests.machine import until
from transports import registry
from transports.base import Pattern
from transports.frames import FrameBatch
from transports.outbox import Outbox
from transports.sockets import end_connection, peer_of


class Killed(Exception):
    """Ends a reporter's thread where it is."""


class Reporters:
    """Reporters of one run, one after the other, each in a thread."""

    def __init__(self, folder: Path, url: str = "tcp://127.0.0.1:0") -> None:
        self.folder, self.url = folder, url
        self.results: list[ReporterResult] = []
        self.links: list[SourceLink] = []
        """Of its sources."""

    def start(self) -> None:
        link = registry.listen(self.url, "token", Pattern.FAN_IN)
        self.url, self.spool = link.url, ReplaceableSpool(self.folder / "spool")
        self.reporter = ReplaceableReporter(RUN, link, self.spool, TIMEOUT_S)
        self._link, self._thread = link, threading.Thread(target=self._run, args=(self.reporter,))
        self._thread.start()

    def _run(self, reporter: ReplaceableReporter) -> None:
        try:
            self.results.append(reporter.run())
        except Killed:
            return

    def kill(self) -> None:
        def die() -> None:
            raise Killed

        self.spool.roll = die  # type: ignore[method-assign]
        self._thread.join()
        self._link.close(0)

    def finish(self) -> ReporterResult:
        self._thread.join()
        (result,) = self.results
        return result

    def close(self) -> None:
        self.reporter.stop("the test is over")
        self._thread.join()
        for link in self.links:
            link.close(0)
        self.reporter.close()


class Component:
    """A source of the reporters."""

    def __init__(self, reporters: Reporters, source: Source) -> None:
        def connect() -> registry.Link:
            return registry.connect(reporters.url, "token", time.monotonic_ns() + 10**8, Pattern.FAN_IN)

        self.link = SourceLink(connect(), connect, source.name.lower())
        reporters.links.append(self.link)
        self.outbox = Outbox(self.link)
        self.reporting = Reporting(self.outbox, TERMS, source)

    def say(self, *messages: Throughput | Timestamp) -> None:
        for message in messages:
            self.reporting.message(message)
        self.outbox.flush()

    def end(self) -> threading.Thread:
        """End, and wait for the reporter's word in a thread."""
        self.reporting.close({})
        waiting = threading.Thread(target=self.outbox.settle, args=(int(TIMEOUT_S * 1e9),))
        waiting.start()
        return waiting


@pytest.fixture
def reporters(tmp_path: Path) -> Iterator[Reporters]:
    reporters = Reporters(tmp_path)
    reporters.start()
    yield reporters
    reporters.close()


def until_spooled(reporters: Reporters, flush: Callable[[], object], lines: int) -> None:
    """Wait for lines in the spool; what waits for room is sent meanwhile."""

    def are_there() -> bool:
        flush()
        return len(list(records(reporters.folder))) >= lines

    until(are_there, f"{lines} lines in the spool")


def is_all_recorded(source: Component) -> bool:
    """Whether a source has heard that all its frames are in the spool."""
    source.link.receive(FrameBatch(16))
    return not source.link.unrecorded()


def test_another_reporter_goes_on_behind_what_is_in_the_spool(reporters: Reporters) -> None:
    """A source forgets what is in the spool."""
    gateway, engine = Component(reporters, Source.GATEWAY), Component(reporters, Source.ENGINE)
    for rate in range(3):
        gateway.say(Throughput(Meter.GATEWAY_ORDERS_SENT, rate))
        engine.say(Throughput(Meter.ENGINE_ORDERS_RECEIVED, rate))
        until(lambda: is_all_recorded(gateway) and is_all_recorded(engine), "the reporter's word")
    reporters.kill()
    gateway.say(Throughput(Meter.GATEWAY_ORDERS_SENT, 3))
    assert len(gateway.link.unrecorded()) == 1
    reporters.start()
    threads = [gateway.end(), engine.end()]
    result = reporters.finish()
    for thread in threads:
        thread.join()
    found = [each for each in records(reporters.folder) if each["kind"] == THROUGHPUT]
    assert [each["payload"]["rate_per_s"] for each in found if each["source"] == "gateway"] == [0, 1, 2, 3]
    assert [each["payload"]["rate_per_s"] for each in found if each["source"] == "engine"] == [0, 1, 2]
    assert (result.announced, result.received, result.checksums_agree, result.stopped) == (9, 9, True, None)


def test_a_source_may_send_nothing_before_its_hello(reporters: Reporters) -> None:
    link = SourceLink(
        registry.connect(reporters.url, "token", time.monotonic_ns() + 10**9, Pattern.FAN_IN), None, "gateway"
    )  # type: ignore[arg-type]
    reporters.links.append(link)
    assert link.send(FrameBatch(1), 0) == 0
    assert link.unrecorded() == []


def test_another_reporter_gets_all_that_the_first_one_lacked(reporters: Reporters) -> None:
    """Even half of a sample."""
    gateway, engine = Component(reporters, Source.GATEWAY), Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10), Timestamp(Meter.ORDER_HANDED_OVER, 7, 100))
    engine.say(Throughput(2, 11))
    until_spooled(reporters, gateway.outbox.flush, 4)
    reporters.kill()
    gateway.say(Timestamp(Meter.ORDER_DUE, 7, 90), Timestamp(Meter.ORDER_ANSWERED, 7, 130))
    reporters.start()
    threads = [gateway.end(), engine.end()]
    result = reporters.finish()
    for thread in threads:
        thread.join()
    found = list(records(reporters.folder))
    assert [each["payload"]["id"] for each in found if each["kind"] == SAMPLE] == [7]
    assert sorted(each["payload"]["rate_per_s"] for each in found if each["kind"] == THROUGHPUT) == [10, 11]
    assert len([each for each in found if each["kind"] == SESSION]) == 2
    assert (result.announced, result.received, result.checksums_agree, result.stopped) == (7, 7, True, None)
    assert sorted(result.results) == ["engine", "gateway"]


def test_a_source_that_was_started_again_meanwhile_begins_anew(reporters: Reporters) -> None:
    gateway, engine = Component(reporters, Source.GATEWAY), Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10), Throughput(1, 20))
    engine.say(Throughput(2, 11))
    until_spooled(reporters, engine.outbox.flush, 5)
    another = Component(reporters, Source.GATEWAY)  # before the reporter dies, since it connects at once
    reporters.kill()
    gateway.link.close(0)
    another.say(Throughput(1, 30))
    reporters.start()
    threads = [another.end(), engine.end()]
    result = reporters.finish()
    for thread in threads:
        thread.join()
    rates = [each["payload"]["rate_per_s"] for each in records(reporters.folder) if each["kind"] == THROUGHPUT]
    assert sorted(rates) == [10, 11, 20, 30]
    assert (result.announced, result.received, result.checksums_agree) == (4, 4, True)


def test_a_connection_that_breaks_costs_nothing_while_the_reporter_lives(reporters: Reporters) -> None:
    gateway, engine = Component(reporters, Source.GATEWAY), Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10))
    (stream,) = gateway.link._link._streams  # type: ignore[union-attr]
    end_connection(stream.fd, peer_of(stream.fd))
    gateway.say(Throughput(1, 20))
    gateway.reporting.record("traffic", TRAFFIC)
    gateway.reporting.record("completion", COMPLETION)
    threads = [gateway.end(), engine.end()]
    result = reporters.finish()
    for thread in threads:
        thread.join()
    assert (result.announced, result.received, result.checksums_agree) == (6, 6, True)


def test_a_connection_to_a_broker_that_breaks_costs_nothing(at_broker: str, tmp_path: Path) -> None:
    reporters = Reporters(tmp_path, at_broker)
    reporters.start()
    gateway, engine = Component(reporters, Source.GATEWAY), Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10))
    stream = gateway.link._link._session.loop.connection.stream  # type: ignore[union-attr]
    end_connection(stream.fd, peer_of(stream.fd))
    gateway.say(Throughput(1, 20))
    gateway.reporting.record("traffic", TRAFFIC)
    threads = [gateway.end(), engine.end()]
    result = reporters.finish()
    for thread in threads:
        thread.join()
    reporters.close()
    assert (result.announced, result.received, result.checksums_agree) == (5, 5, True)


def test_a_source_that_was_killed_after_its_end_is_awaited_again(reporters: Reporters) -> None:
    gateway, engine = Component(reporters, Source.GATEWAY), Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10))
    engine.say(Throughput(2, 11))
    waiting = [engine.end()]
    until(lambda: reporters.reporter._ends, "the engine's end")
    another = Component(reporters, Source.ENGINE)
    another.say(Throughput(2, 12))
    until_spooled(reporters, another.outbox.flush, 6)
    waiting += [gateway.end(), another.end()]
    result = reporters.finish()
    for thread in waiting:
        thread.join()
    assert (result.announced, result.received, result.checksums_agree, result.stopped) == (4, 4, True, None)
    assert sorted(result.results) == ["engine", "gateway"]
