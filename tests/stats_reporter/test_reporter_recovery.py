"""A reporter is killed, and another reporter goes on with the same sources, over TCP and in one process.

A test kills a reporter by an exception in its thread: as after a real kill, only its files are left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reporter_session import COMPLETION, RUN, TERMS, TIMEOUT_S, TRAFFIC

from exchange.messages import Throughput, Timestamp
from exchange.meters import Meter, Source
from exchange.records import SAMPLE, SESSION, THROUGHPUT
from exchange.results import ReporterResult
from exchange.session import Reporting
from exchange_simulation.launching.record.reading import spool_records
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
    """Ends a reporter's thread at once."""


class Reporters:
    """Reporters of one run, one after the other, each in a thread."""

    def __init__(self, folder: Path, url: str = "tcp://127.0.0.1:0") -> None:
        self.folder = folder
        self.url = url
        self.results: list[ReporterResult] = []
        self.source_links: list[SourceLink] = []

    def start(self) -> None:
        """Start a reporter at the address of the previous one."""
        self._link = registry.listen(self.url, "token", Pattern.FAN_IN)
        self.url = self._link.url
        self.spool = ReplaceableSpool(self.folder / "spool")
        self.reporter = ReplaceableReporter(RUN, self._link, self.spool, TIMEOUT_S)
        self._thread = threading.Thread(target=self._run, args=(self.reporter,))
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
        for link in self.source_links:
            link.close(0)
        self.reporter.close()


class Component:
    """A source of the reporters."""

    def __init__(self, reporters: Reporters, source: Source) -> None:
        def connect() -> registry.Link:
            return registry.connect(reporters.url, "token", time.monotonic_ns() + 10**8, Pattern.FAN_IN)

        self.link = SourceLink(connect(), connect, source.name.lower())
        reporters.source_links.append(self.link)
        self.outbox = Outbox(self.link)
        self.reporting = Reporting(self.outbox, TERMS, source)

    def say(self, *messages: Throughput | Timestamp) -> None:
        for message in messages:
            self.reporting.message(message)
        self.outbox.flush()

    def end(self) -> threading.Thread:
        """Send the end, and start a thread that waits for the reporter's confirmation."""
        self.reporting.close({})
        waiting_thread = threading.Thread(target=self.outbox.settle, args=(int(TIMEOUT_S * 1e9),))
        waiting_thread.start()
        return waiting_thread


def finish(reporters: Reporters, *sources: Component) -> ReporterResult:
    """End these sources, and wait for the last reporter's result."""
    threads = [source.end() for source in sources]
    result = reporters.finish()
    for thread in threads:
        thread.join()
    return result


def records_of(reporters: Reporters, kind: str) -> list[dict[str, Any]]:
    """Return the records of this kind in the spool."""
    return [record for record in spool_records(reporters.folder) if record["kind"] == kind]


def rates_of(reporters: Reporters, source: str) -> list[int]:
    """Return the rates that this source reported, as the spool has them."""
    throughputs = [record for record in records_of(reporters, THROUGHPUT) if record["source"] == source]
    return [record["payload"]["rate_per_s"] for record in throughputs]


@pytest.fixture
def reporters(tmp_path: Path) -> Iterator[Reporters]:
    reporters = Reporters(tmp_path)
    reporters.start()
    yield reporters
    reporters.close()


def until_spooled(reporters: Reporters, flush: Callable[[], object], lines: int) -> None:
    """Wait for this many lines in the spool. `flush` sends the frames that wait for room."""

    def has_lines() -> bool:
        flush()
        return len(list(spool_records(reporters.folder))) >= lines

    until(has_lines, f"{lines} lines in the spool")


def is_all_recorded(source: Component) -> bool:
    """Return whether the source knows that all its frames are in the spool."""
    source.link.receive(FrameBatch(16))
    return not source.link.unrecorded()


def test_another_reporter_goes_on_after_the_last_line_of_the_spool(reporters: Reporters) -> None:
    gateway = Component(reporters, Source.GATEWAY)
    engine = Component(reporters, Source.ENGINE)
    for rate in range(3):
        gateway.say(Throughput(Meter.GATEWAY_ORDERS_SENT, rate))
        engine.say(Throughput(Meter.ENGINE_ORDERS_RECEIVED, rate))
        until(lambda: is_all_recorded(gateway) and is_all_recorded(engine), "the reporter's confirmation")
    reporters.kill()
    gateway.say(Throughput(Meter.GATEWAY_ORDERS_SENT, 3))
    assert len(gateway.link.unrecorded()) == 1, "a source drops frames that are in the spool"
    reporters.start()
    result = finish(reporters, gateway, engine)
    assert rates_of(reporters, "gateway") == [0, 1, 2, 3]
    assert rates_of(reporters, "engine") == [0, 1, 2]
    assert result.announced == 9
    assert result.received == 9
    assert result.checksums_agree
    assert result.stopped is None


def test_a_source_may_send_nothing_before_its_hello(reporters: Reporters) -> None:
    connection = registry.connect(reporters.url, "token", time.monotonic_ns() + 10**9, Pattern.FAN_IN)
    link = SourceLink(connection, None, "gateway")  # type: ignore[arg-type]
    reporters.source_links.append(link)
    assert link.send(FrameBatch(1), 0) == 0
    assert link.unrecorded() == []


def test_another_reporter_gets_all_frames_that_are_not_in_the_spool(reporters: Reporters) -> None:
    """The first reporter has half of a sample, and the other reporter completes the sample."""
    gateway = Component(reporters, Source.GATEWAY)
    engine = Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10), Timestamp(Meter.ORDER_HANDED_OVER, 7, 100))
    engine.say(Throughput(2, 11))
    until_spooled(reporters, gateway.outbox.flush, 4)
    reporters.kill()
    gateway.say(Timestamp(Meter.ORDER_DUE, 7, 90), Timestamp(Meter.ORDER_ANSWERED, 7, 130))
    reporters.start()
    result = finish(reporters, gateway, engine)
    [sample] = records_of(reporters, SAMPLE)
    assert sample["payload"]["id"] == 7
    assert rates_of(reporters, "gateway") == [10]
    assert rates_of(reporters, "engine") == [11]
    assert len(records_of(reporters, SESSION)) == 2
    assert result.announced == 7
    assert result.received == 7
    assert result.checksums_agree
    assert result.stopped is None
    assert sorted(result.results) == ["engine", "gateway"]


def test_a_source_that_was_restarted_begins_a_new_session(reporters: Reporters) -> None:
    gateway = Component(reporters, Source.GATEWAY)
    engine = Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10), Throughput(1, 20))
    engine.say(Throughput(2, 11))
    until_spooled(reporters, engine.outbox.flush, 5)
    another = Component(reporters, Source.GATEWAY)  # it connects at once, so before the reporter is killed
    reporters.kill()
    gateway.link.close(0)
    another.say(Throughput(1, 30))
    reporters.start()
    result = finish(reporters, another, engine)
    assert rates_of(reporters, "gateway") == [10, 20, 30]
    assert rates_of(reporters, "engine") == [11]
    assert result.announced == 4
    assert result.received == 4
    assert result.checksums_agree


def test_a_broken_connection_to_a_living_reporter_loses_nothing(reporters: Reporters) -> None:
    gateway = Component(reporters, Source.GATEWAY)
    engine = Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10))
    (stream,) = gateway.link._link._streams  # type: ignore[union-attr]
    end_connection(stream.fd, peer_of(stream.fd))
    gateway.say(Throughput(1, 20))
    gateway.reporting.record("traffic", TRAFFIC)
    gateway.reporting.record("completion", COMPLETION)
    result = finish(reporters, gateway, engine)
    assert result.announced == 6
    assert result.received == 6
    assert result.checksums_agree


def test_a_broken_connection_to_a_broker_loses_nothing(at_broker: str, tmp_path: Path) -> None:
    reporters = Reporters(tmp_path, at_broker)
    reporters.start()
    gateway = Component(reporters, Source.GATEWAY)
    engine = Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10))
    stream = gateway.link._link._session.loop.connection.stream  # type: ignore[union-attr]
    end_connection(stream.fd, peer_of(stream.fd))
    gateway.say(Throughput(1, 20))
    gateway.reporting.record("traffic", TRAFFIC)
    result = finish(reporters, gateway, engine)
    reporters.close()
    assert result.announced == 5
    assert result.received == 5
    assert result.checksums_agree


def test_the_reporter_waits_for_a_source_that_restarts_after_its_end(reporters: Reporters) -> None:
    gateway = Component(reporters, Source.GATEWAY)
    engine = Component(reporters, Source.ENGINE)
    gateway.say(Throughput(1, 10))
    engine.say(Throughput(2, 11))
    waiting_thread = engine.end()
    until(lambda: reporters.reporter._ends, "the engine's end")
    another = Component(reporters, Source.ENGINE)
    another.say(Throughput(2, 12))
    until_spooled(reporters, another.outbox.flush, 6)
    result = finish(reporters, gateway, another)
    waiting_thread.join()
    assert result.announced == 4
    assert result.received == 4
    assert result.checksums_agree
    assert result.stopped is None
    assert sorted(result.results) == ["engine", "gateway"]
