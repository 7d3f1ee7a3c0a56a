"""Opens each component's service from its settings; each loads only what it needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from exchange.checksum import Stream
from exchange.session import Terms
from exchange.settings import RunSettings
from runs.component.component import run_id
from runs.lineup import Lineup
from transports.base import Link
from transports.pattern import Pattern
from transports.registry import connect, listen

if TYPE_CHECKING:
    from gateway.service import Gateway
    from matching_engine.service import EngineService
    from stats_reporter.service import Reporter


def _deadline_ns(timeout_s: float) -> int:
    return time.monotonic_ns() + int(timeout_s * 1e9)


def open_reporter(
    name: str, url: str, folder: Callable[[], Path], settings: RunSettings, of_thread: bool = False, instance: int = 1
) -> tuple[Reporter, Link]:
    """`folder` makes the run's folder; a place where nobody can listen leaves none behind."""
    from stats_reporter.service import Reporter
    from stats_reporter.writer import SpoolWriter

    link = listen(url, name, pattern=Pattern.FAN_IN)
    spool, sources = SpoolWriter(folder() / "spool", instance=instance), Lineup.of(settings).part_of(instance).sources
    return Reporter(
        run_id(name), link, spool, settings.timeout_s, sources, of_thread, instance, settings.reporters
    ), link


def open_engine(
    name: str, url: str, reporter_url: str, settings: RunSettings, of_thread: bool = False,
    capacity: int | None = None, with_ids: bool = False, instance: int = 1,
) -> tuple[EngineService, Link]:  # fmt: skip
    from matching_engine.engine import MatchingEngine
    from matching_engine.order_book import OrderBook
    from matching_engine.service import EngineService

    gateway = listen(url, name)
    reporter = connect(reporter_url, name, _deadline_ns(settings.timeout_s), pattern=Pattern.FAN_IN)
    book = OrderBook(settings.max_price, settings.policy, capacity, with_ids)
    terms = Terms(run_id(name), settings.policy, settings.packing, settings.max_price, instance)
    engine = MatchingEngine(book, settings.packing)
    return EngineService(
        engine, terms, gateway, reporter, settings.sampling_interval, settings.timeout_s, of_thread
    ), gateway


def open_gateway(
    name: str, engine_url: str, reporter_url: str, settings: RunSettings, streams: tuple[Stream, Stream],
    of_thread: bool = False, instance: int = 1,
) -> Gateway:  # fmt: skip
    from gateway.service import Gateway

    until_ns = _deadline_ns(settings.timeout_s)
    reporter = connect(reporter_url, name, until_ns, pattern=Pattern.FAN_IN)
    engine = connect(engine_url, name, until_ns)
    return Gateway(settings, run_id(name), engine, reporter, streams, of_thread, instance)
