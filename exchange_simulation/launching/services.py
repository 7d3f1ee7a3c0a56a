"""Opens each component's service: its links, its recorded streams, and the loop, which it imports only when needed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import xxhash

from exchange.instances import named
from exchange.messages import PROTOCOL_VERSION
from exchange.results import HashedStream
from exchange.session import Terms
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import DISK_ERRORS, UserError
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.notices import say
from transports.base import Link, Pattern, TransportError
from transports.registry import connect, has_broker, listen

if TYPE_CHECKING:
    from gateway.service import Gateway
    from matching_engine.engine import MatchingEngine
    from matching_engine.recovering.engine import RecoveringEngine
    from matching_engine.recovering.follower import Follower
    from matching_engine.recovering.journal import InputJournal
    from matching_engine.recovering.resumed_session import ResumedSession
    from matching_engine.recovering.standby import Standby
    from matching_engine.service import EngineService
    from stats_reporter.recovering.source_link import SourceLink
    from stats_reporter.service import Reporter

LISTEN_AGAIN_S, ATTEMPT_S = 0.005, 0.1

TOKEN = "EXCHANGE_TOKEN"
"""The environment variable that holds a run's secret: every user of a host sees arguments, but not the environment."""


def link_token(name: str, url: str) -> str:
    """The token that each link asks of its peer: the secret in EXCHANGE_TOKEN, or the run's name if there is none.

    At a broker it is always the name: queues are called by it, and a broker's tools list them.
    """
    return (not has_broker(url) and os.environ.get(TOKEN)) or name


def run_id(name: str) -> int:
    """The run's 64-bit number on the wire, a hash of its name."""
    return int(xxhash.xxh64_intdigest(name.encode()))


def _deadline_ns(timeout_s: float) -> int:
    return time.monotonic_ns() + int(timeout_s * 1e9)


def open_reporter(
    name: str,
    url: str,
    folder: Callable[[], Path],
    settings: RunSettings,
    reports_thread_usage: bool = False,
    instance: int = 1,
    sources_may_break: bool = False,
) -> tuple[Reporter, Link]:
    """Listen, then let `folder` make the run's folder, so that a listener that fails leaves none behind.

    `sources_may_break`: gateway or engine may break off and go on, though the settings here do not say so.
    """
    from stats_reporter.service import Reporter
    from stats_reporter.writer import SpoolWriter

    link = listen(url, link_token(name, url), pattern=Pattern.FAN_IN)
    spool_folder = folder() / "spool"
    run = run_id(name)
    sources = Lineup.of(settings).part_of(instance).sources
    rest = (settings.timeout_s, sources, reports_thread_usage, instance, settings.reporters)
    if settings.recover:
        from stats_reporter.recovering.reporter import ReplaceableReporter
        from stats_reporter.recovering.spool import ReplaceableSpool

        return ReplaceableReporter(run, link, ReplaceableSpool(spool_folder, instance=instance), *rest), link
    spool = SpoolWriter(spool_folder, instance=instance)
    if settings.journals or sources_may_break:
        from stats_reporter.recovering.reporter import RecoveringReporter

        return RecoveringReporter(run, link, spool, *rest), link
    return Reporter(run, link, spool, *rest), link


def open_engine(
    name: str,
    url: str,
    reporter_url: str,
    settings: RunSettings,
    reports_thread_usage: bool = False,
    capacity: int | None = None,
    with_ids: bool = False,
    instance: int = 1,
    salvage: bool = False,
    patience_s: float | None = None,
) -> tuple[EngineService, Link]:
    """The service, and the link on which it waits for its gateway. With a journal, that link can be opened again.

    `patience_s`: how long it waits for a reporter that listens; None for the settings' timeout.
    """
    if salvage and not settings.journal:
        raise UserError("--salvage goes on with a journal: say which with --journal DIR")
    gateway = listen(url, link_token(name, url))
    engine = _engine(settings, capacity, with_ids)
    session = None
    if settings.journal:
        try:
            session = _reopened(name, gateway, settings, instance, engine, salvage)
        except UserError:
            gateway.close(0)
            raise
    until_ns = _deadline_ns(patience_s or settings.timeout_s)
    reporter = _to_reporter(name, named("engine", instance), reporter_url, settings, until_ns)
    if session is not None:
        return _recovering_engine(
            name, engine, session, reporter, settings, instance, reports_thread_usage
        ), session.link
    from matching_engine.service import EngineService

    terms = _terms(name, settings, instance)
    service = EngineService(
        engine, terms, gateway, reporter, settings.sampling_interval, settings.timeout_s, reports_thread_usage
    )
    return service, gateway


def _terms(name: str, settings: RunSettings, instance: int) -> Terms:
    return Terms(run_id(name), settings.policy, settings.packing, settings.max_price, instance)


def _reopened(
    name: str, gateway: Link, settings: RunSettings, instance: int, engine: MatchingEngine, salvage: bool
) -> ResumedSession:
    """The journal, with which a session goes on. To be salvaged, it is read from its first order, without snapshot."""
    from matching_engine.recovering.follower import Follower
    from matching_engine.recovering.journal import JournalIsOthers

    follower = None if salvage else Follower.from_snapshot(_journal_path(settings, instance), engine)
    try:
        return _resumed_session(name, gateway, _open_journal(name, settings, instance, salvage, follower), follower)
    except JournalIsOthers as error:
        raise UserError(str(error)) from error


def open_standby(
    name: str,
    url: str,
    reporter_url: str,
    settings: RunSettings,
    on_takeover: Callable[[RecoveringEngine], None],
    capacity: int | None = None,
    with_ids: bool = False,
    instance: int = 1,
) -> Standby:
    """An engine that follows another one's journal until it is free. UserError without a journal."""
    from matching_engine.recovering.follower import Follower
    from matching_engine.recovering.standby import Standby

    if not settings.journal:
        raise UserError("--standby follows a journal: say which with --journal DIR")
    follower = Follower(_journal_path(settings, instance), _engine(settings, capacity, with_ids))

    def open_service(journal: InputJournal) -> RecoveringEngine:
        gateway = _listen_soon(name, url, settings.timeout_s)
        session = _resumed_session(name, gateway, journal, follower)
        until_ns = _deadline_ns(settings.timeout_s)
        reporter = _to_reporter(name, named("engine", instance), reporter_url, settings, until_ns)
        return _recovering_engine(name, _engine(settings, capacity, with_ids), session, reporter, settings, instance)

    take_journal = partial(_open_journal, name, settings, instance, follower=follower)
    return Standby(follower, take_journal, open_service, on_takeover)


def _listen_soon(name: str, url: str, timeout_s: float) -> Link:
    """Listen where a dead engine listened. Its sockets, and a broker's memory of it, disappear a little later."""
    until_ns = _deadline_ns(timeout_s)
    while True:
        try:
            return listen(url, link_token(name, url))
        except TransportError:
            if time.monotonic_ns() > until_ns:
                raise
            time.sleep(LISTEN_AGAIN_S)


def _engine(settings: RunSettings, capacity: int | None, with_ids: bool) -> MatchingEngine:
    from matching_engine.engine import MatchingEngine
    from matching_engine.order_book import OrderBook

    return MatchingEngine(OrderBook(settings.max_price, settings.policy, capacity, with_ids), settings.packing)


def _recovering_engine(
    name: str,
    engine: MatchingEngine,
    session: ResumedSession,
    reporter: Link,
    settings: RunSettings,
    instance: int,
    reports_thread_usage: bool = False,
) -> RecoveringEngine:
    from matching_engine.recovering.engine import RecoveringEngine

    terms = _terms(name, settings, instance)
    return RecoveringEngine(
        engine, terms, session, reporter, settings.sampling_interval, settings.timeout_s, reports_thread_usage
    )


def _to_reporter(name: str, source: str, url: str, settings: RunSettings, until_ns: int) -> Link:
    """A source's link to its reporter. Where the session can be resumed, another reporter may take that one's place."""

    def open_link(until_ns: int) -> Link:
        return connect(url, link_token(name, url), until_ns, pattern=Pattern.FAN_IN)

    link = open_link(until_ns)
    if not settings.journals:
        return link
    from stats_reporter.recovering.source_link import SourceLink

    return SourceLink(link, lambda: open_link(_deadline_ns(ATTEMPT_S)), source)


def _journal_path(settings: RunSettings, instance: int) -> Path:
    return Path(str(settings.journal)) / f"{named('engine', instance)}.journal"


def _open_journal(
    name: str, settings: RunSettings, instance: int, salvage: bool = False, follower: Follower | None = None
) -> InputJournal:
    """The engine's journal, with which it goes on. UserError if it is damaged, or another's.

    A follower, which has matched its beginning, matches the rest. JournalIsOthers if another engine has the journal.
    """
    from matching_engine.recovering.journal import InputJournal, JournalIsOthers, JournalRefused

    identity = {
        "run": name,
        "pair": instance,
        "policy": settings.policy,
        "packing": settings.packing,
        "max_price": settings.max_price,
        "protocol": PROTOCOL_VERSION,
    }
    options: dict[str, Any] = {"reader": follower.reader, "on_orders": follower.match} if follower else {}
    try:
        return InputJournal(
            _journal_path(settings, instance), identity, settings.packing, settings.sync, salvage, say, **options
        )
    except JournalRefused as error:
        if isinstance(error, JournalIsOthers):
            raise
        raise UserError(str(error)) from error
    except OSError as error:
        kind = OSError if error.errno in DISK_ERRORS else UserError
        raise kind(f"cannot keep a journal in {settings.journal}: {error.strerror or error}") from error


def _resumed_session(
    name: str, gateway: Link, journal: InputJournal, follower: Follower | None = None
) -> ResumedSession:
    from matching_engine.recovering.resumed_session import ResumedSession

    url = gateway.url
    return ResumedSession(journal, gateway, lambda _: listen(url, link_token(name, url)), follower)


def open_gateway(
    name: str,
    engine_url: str,
    reporter_url: str,
    settings: RunSettings,
    streams: tuple[HashedStream, HashedStream],
    reports_thread_usage: bool = False,
    instance: int = 1,
    patience_s: float | None = None,
) -> Gateway:
    """The service, which gives the bytes of orders and of answers to the two `streams`.

    `patience_s`: how long it waits for an engine and a reporter that listen; None for the settings' timeout.
    """
    until_ns = _deadline_ns(patience_s or settings.timeout_s)
    reporter = _to_reporter(name, named("gateway", instance), reporter_url, settings, until_ns)
    engine = connect(engine_url, link_token(name, engine_url), until_ns)
    if not settings.journals:
        from gateway.service import Gateway

        return Gateway(settings, run_id(name), engine, reporter, streams, reports_thread_usage, instance)
    from gateway.recovering.gateway import RecoveringGateway
    from transports.renewable import RenewableLink

    engine = RenewableLink(engine, lambda until_ns: connect(engine_url, link_token(name, engine_url), until_ns))
    service = RecoveringGateway(settings, run_id(name), engine, reporter, streams, reports_thread_usage, instance)
    service.unrecorded = cast("SourceLink", reporter).unrecorded
    return service
