"""Opens the service of each component: its links and its loop. The loop is imported only when it is needed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import xxhash

from exchange.instances import named
from exchange.messages import PROTOCOL_VERSION
from exchange.results import GatewayStreams, HashedStream
from exchange.session import Terms
from exchange.settings import RunSettings
from exchange.words import counted
from exchange_simulation.launching.errors import DISK_ERRORS, UserError
from exchange_simulation.launching.first_alone import import_in_turn
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.notices import say
from transports.base import Link, Pattern, TransportError
from transports.registry import connect, has_broker, listen, scheme_of, transport_of

if TYPE_CHECKING:
    from gateway.market_data.feeds import FeedsSubscriber
    from gateway.market_data.subscriber import Subscriber
    from gateway.service import Gateway
    from matching_engine.engine import MatchingEngine
    from matching_engine.market_data.feed import PublishingEngine
    from matching_engine.market_data.publisher import MarketDataPublisher
    from matching_engine.recovering.engine import RecoveringEngine
    from matching_engine.recovering.follower import Follower
    from matching_engine.recovering.journal import InputJournal
    from matching_engine.recovering.resumed_session import ResumedSession
    from matching_engine.recovering.standby import Standby
    from matching_engine.service import EngineService
    from matching_engine.sessions.service import SharedEngineService
    from stats_reporter.recovering.source_link import SourceLink
    from stats_reporter.service import Reporter

LISTEN_AGAIN_S = 0.005
"""The time between two attempts to listen where a dead engine listened."""
ATTEMPT_S = 0.1
"""The longest time of an attempt to connect to another reporter."""
TOKEN = "EXCHANGE_TOKEN"
"""The environment variable with a run's secret. Other users of a host see arguments, but not the environment."""


def link_token(name: str, url: str) -> str:
    """Return the token that each link asks of its peer: the secret in EXCHANGE_TOKEN, or else the run's name.

    At a broker the token is always the name: queues are named by the token, and a broker's tools list them.
    """
    if has_broker(url):
        return name
    return os.environ.get(TOKEN) or name


def run_id(name: str) -> int:
    """Return the run's 64-bit number on the wire, a hash of its name."""
    return int(xxhash.xxh64_intdigest(name.encode()))


def _deadline_ns(timeout_s: float) -> int:
    return time.monotonic_ns() + int(timeout_s * 1e9)


def open_reporter(
    name: str,
    url: str,
    make_folder: Callable[[], Path],
    settings: RunSettings,
    reports_thread_usage: bool = False,
    instance: int = 1,
    sources_may_break: bool = False,
) -> tuple[Reporter, Link]:
    """Return a reporter's service and its listening link.

    `make_folder` makes the run's folder. It is called once the link listens, so that a failure leaves no folder behind.
    `sources_may_break`: a gateway or engine may break off and resume, even if the reporter's own settings exclude that.
    """
    from stats_reporter.service import Reporter
    from stats_reporter.writer import SpoolWriter

    link = listen(url, link_token(name, url), pattern=Pattern.FAN_IN)
    spool_folder = make_folder() / "spool"
    sources = Lineup.of(settings).of_reporter(instance).sources
    reporter_class: type[Reporter] = Reporter
    writer_class: type[SpoolWriter] = SpoolWriter
    if settings.recover:
        from stats_reporter.recovering.reporter import ReplaceableReporter
        from stats_reporter.recovering.spool import ReplaceableSpool

        reporter_class = ReplaceableReporter
        writer_class = ReplaceableSpool
    elif settings.journals or sources_may_break:
        from stats_reporter.recovering.reporter import RecoveringReporter

        reporter_class = RecoveringReporter
    reporter = reporter_class(
        run_id(name),
        link,
        writer_class(spool_folder, instance=instance),
        settings.timeout_s,
        sources,
        reports_thread_usage,
        instance,
        settings.reporters,
    )
    return reporter, link


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
    market_data_url: str | None = None,
) -> tuple[EngineService, Link]:
    """Return an engine's service, and the link on which it waits for its gateway.

    With a journal, that link can be opened again. `patience_s`: how long the engine waits for its reporter to listen;
    None for the settings' timeout. With `market_data_url` it publishes market data there.
    """
    _check_market_data_url(settings, market_data_url)
    if salvage and not settings.journal:
        raise UserError("--salvage goes on with a journal: say which with --journal DIR")
    import_in_turn("engine", "matching_engine.service")
    engine = _engine(settings, capacity, with_ids)
    gateway_link = listen(url, link_token(name, url))
    session = None
    if settings.journal:
        try:
            session = _session_of_journal(name, gateway_link, settings, instance, engine, salvage)
        except UserError:
            gateway_link.close(0)
            raise
    until_ns = _deadline_ns(patience_s or settings.timeout_s)
    reporter = _to_reporter(name, named("engine", instance), reporter_url, settings, until_ns)
    if session is not None:
        recovering = _recovering_engine(name, engine, session, reporter, settings, instance, reports_thread_usage)
        return recovering, session.link
    from matching_engine.service import EngineService

    terms = _terms(name, settings, instance)
    if market_data_url is not None:
        from matching_engine.market_data.service import PublishingEngineService

        publishing = _publishing_engine(engine, settings)
        publishing_service = PublishingEngineService(
            publishing,
            terms,
            gateway_link,
            reporter,
            settings.sampling_interval,
            settings.timeout_s,
            reports_thread_usage,
            settings.work_ns,
        )
        publishing_service.publisher = _publisher(name, market_data_url, publishing, settings, instance)
        return publishing_service, gateway_link
    service = EngineService(
        engine,
        terms,
        gateway_link,
        reporter,
        settings.sampling_interval,
        settings.timeout_s,
        reports_thread_usage,
        settings.work_ns,
    )
    return service, gateway_link


def open_shared_engine(
    name: str,
    urls: Sequence[str],
    reporter_url: str,
    settings: RunSettings,
    input_stream: HashedStream | None = None,
    reports_thread_usage: bool = False,
    capacity: int | None = None,
    with_ids: bool = False,
    instance: int = 1,
    patience_s: float | None = None,
    market_data_url: str | None = None,
) -> tuple[SharedEngineService, list[Link]]:
    """Return the service of an engine of a market, and the links on which it waits for the gateways.

    `urls` are the addresses for gateways 1, 2, ... `instance` is the engine's number. `input_stream`, `patience_s` and
    `market_data_url`: see SharedEngineService and `open_engine`.
    """
    _check_market_data_url(settings, market_data_url)
    if len(urls) != settings.gateways:
        raise UserError(
            f"--listen has {counted(len(urls), 'addresses')}, and --gateways is {settings.gateways}: give an address "
            f"for each gateway, in quotes, with a space between"
        )
    import_in_turn("engine", "matching_engine.sessions.service")
    from matching_engine.sessions.service import SharedEngineService

    links: list[Link] = []
    try:
        for url in urls:
            links.append(listen(url, link_token(name, url)))
        until_ns = _deadline_ns(patience_s or settings.timeout_s)
        reporter = _to_reporter(name, named("engine", instance), reporter_url, settings, until_ns)
    except BaseException:
        for link in links:
            link.close(0)
        raise
    if market_data_url is not None:
        from matching_engine.market_data.service import PublishingSharedEngineService

        publishing = _publishing_engine(_engine(settings, capacity, with_ids), settings)
        publishing_service = PublishingSharedEngineService(
            publishing,
            _terms(name, settings, instance),
            links,
            reporter,
            settings.sampling_interval,
            settings.timeout_s,
            reports_thread_usage,
            input_stream,
            sends_quotes=settings.quotes_to == "all",
        )
        publishing_service.publisher = _publisher(name, market_data_url, publishing, settings, instance)
        return publishing_service, links
    service = SharedEngineService(
        _engine(settings, capacity, with_ids),
        _terms(name, settings, instance),
        links,
        reporter,
        settings.sampling_interval,
        settings.timeout_s,
        reports_thread_usage,
        input_stream,
        sends_quotes=settings.quotes_to == "all",
    )
    return service, links


def _check_market_data_url(settings: RunSettings, url: str | None) -> None:
    """UserError if there are to be subscribers, and no address for them."""
    if settings.subscribers and url is None:
        raise UserError(f"--subscribers is {settings.subscribers}: say with --market-data URL where they connect to")


def _publisher(
    name: str, url: str, engine: PublishingEngine, settings: RunSettings, instance: int
) -> MarketDataPublisher:
    """Return the publisher of an engine's market data. It listens at the URL, and empties the engine's feed."""
    from matching_engine.market_data.publisher import MarketDataPublisher

    link = listen(url, link_token(name, url), pattern=_market_data_pattern(url))
    rule = str(settings.slow_subscriber)
    terms = _terms_of_feed(name, settings, instance)
    publisher = MarketDataPublisher(engine.feed, link, terms, settings.subscribers, rule, settings.timeout_s)
    engine.empty_feed = publisher.publish
    return publisher


def _market_data_pattern(url: str) -> Pattern:
    return transport_of(scheme_of(url)).market_data_pattern


def _publishing_engine(engine: MatchingEngine, settings: RunSettings) -> PublishingEngine:
    """Return an engine with the same book that publishes market data."""
    from matching_engine.market_data.feed import PublishingEngine

    publishing = PublishingEngine(engine.book, settings.depth, is_shared=settings.is_market, packing=settings.packing)
    if settings.opening is not None:
        publishing.feed.begin_with_book()
    return publishing


def open_subscriber(
    name: str, url: str, settings: RunSettings, instance: int = 1, patience_s: float | None = None
) -> Subscriber | FeedsSubscriber:
    """Return the service of a subscriber to the market data that an engine publishes at the URL.

    With several engines, `url` has the URLs of engines 1, 2, ..., with a space between.
    """
    import_in_turn("subscriber", "gateway.market_data.feeds")
    from gateway.market_data.feeds import FeedsSubscriber
    from gateway.market_data.subscriber import Subscriber

    urls = url.split()
    if len(urls) != settings.engines:
        raise UserError(
            f"--market-data has {counted(len(urls), 'addresses')}, and --engines is {settings.engines}: give the "
            f"address of each engine's market data, in quotes, with a space between"
        )
    until_ns = _deadline_ns(patience_s or settings.timeout_s)
    asks_after_gaps = settings.slow_subscriber == "conflate"
    feeds: list[Subscriber] = []
    try:
        for engine, url_of_feed in enumerate(urls, start=1):
            pattern = _market_data_pattern(url_of_feed)
            link = connect(url_of_feed, link_token(name, url_of_feed), until_ns, pattern=pattern)
            terms = _terms_of_feed(name, settings, engine)
            feeds.append(Subscriber(link, terms, instance, settings.timeout_s, asks_after_gaps, settings.instruments))
    except BaseException:
        for feed in feeds:
            feed.close()
        raise
    return feeds[0] if len(feeds) == 1 else FeedsSubscriber(feeds)


def _terms(name: str, settings: RunSettings, instance: int) -> Terms:
    """Return the terms of a session, on which gateway and engine must agree. `instance` is the engine's number."""
    return Terms.of_settings(run_id(name), settings, instance=instance, engine=instance)


def _terms_of_feed(name: str, settings: RunSettings, engine: int) -> Terms:
    """Return the terms of market data, on which a subscriber and an engine must agree.

    The two agree on the numbers of engines and instruments, and on the prices. A subscriber knows neither the packing
    nor the number of gateways, so both are 1 here: market data is never packed.
    """
    return replace(_terms(name, settings, engine), packing=1, gateways=1, instance=1)


def _session_of_journal(
    name: str, gateway_link: Link, settings: RunSettings, instance: int, engine: MatchingEngine, salvage: bool
) -> ResumedSession:
    """Return the session that the engine's journal begins or continues. UserError if another engine has the journal.

    With `salvage`, the journal is read from its first order, without a snapshot.
    """
    from matching_engine.recovering.follower import Follower
    from matching_engine.recovering.journal import JournalIsOthers

    follower = None if salvage else Follower.from_snapshot(_journal_path(settings, instance), engine)
    try:
        journal = _open_journal(name, settings, instance, salvage, follower)
        return _resumed_session(name, gateway_link, journal, follower)
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
    """Return a standby: an engine that follows another engine's journal until that engine is gone.

    UserError without a journal.
    """
    from matching_engine.recovering.follower import Follower
    from matching_engine.recovering.standby import Standby

    if not settings.journal:
        raise UserError("--standby follows a journal: say which with --journal DIR")
    follower = Follower(_journal_path(settings, instance), _engine(settings, capacity, with_ids))

    def open_service(journal: InputJournal) -> RecoveringEngine:
        gateway_link = _listen_soon(name, url, settings.timeout_s)
        session = _resumed_session(name, gateway_link, journal, follower)
        until_ns = _deadline_ns(settings.timeout_s)
        reporter = _to_reporter(name, named("engine", instance), reporter_url, settings, until_ns)
        # This engine gives way to the follower's. If the gateway lacks answers that the follower no longer has, this
        # engine matches the whole journal again.
        engine = _engine(settings, capacity, with_ids)
        return _recovering_engine(name, engine, session, reporter, settings, instance)

    take_journal = partial(_open_journal, name, settings, instance, follower=follower)
    return Standby(follower, take_journal, open_service, on_takeover)


def _listen_soon(name: str, url: str, timeout_s: float) -> Link:
    """Listen at the address of a dead engine, as soon as that is possible.

    The dead engine's sockets, and a broker's knowledge of it, disappear with a small delay.
    """
    until_ns = _deadline_ns(timeout_s)
    while True:
        try:
            return listen(url, link_token(name, url))
        except TransportError:
            if time.monotonic_ns() > until_ns:
                raise
            time.sleep(LISTEN_AGAIN_S)


def _engine(settings: RunSettings, capacity: int | None, with_ids: bool) -> MatchingEngine:
    """Return an engine whose book has the opening's orders, if there is one. UserError if it cannot take them."""
    finds_orders = with_ids or settings.has_cancels_or_replaces
    if settings.opening is None:
        return _engine_with_empty_book(settings, capacity, finds_orders)
    from exchange_simulation.launching.opening_tape import fill_book_of, needs_ids, read_opening

    path = Path(settings.opening)
    opening = read_opening(path)
    engine = _engine_with_empty_book(settings, capacity, finds_orders or needs_ids(path, opening))
    fill_book_of(engine, path, opening)
    return engine


def _engine_with_empty_book(settings: RunSettings, capacity: int | None, finds_orders: bool) -> MatchingEngine:
    from matching_engine.engine import MatchingEngine
    from matching_engine.order_book import OrderBook

    instruments = None if settings.instruments == 1 else settings.instruments
    book = OrderBook(settings.max_price, settings.policy, capacity, finds_orders, instruments)
    return MatchingEngine(book, settings.packing, is_shared=settings.is_market)


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
        engine,
        terms,
        session,
        reporter,
        settings.sampling_interval,
        settings.timeout_s,
        reports_thread_usage,
        settings.work_ns,
    )


def _to_reporter(name: str, source: str, url: str, settings: RunSettings, until_ns: int) -> Link:
    """Return a source's link to its reporter. If sessions can be resumed, it connects again to a new reporter."""

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
    """Open the engine's journal. UserError if the journal is damaged, or of another run.

    If there is a follower, it has matched the beginning of the journal, and matches the rest. JournalIsOthers if
    another engine has the journal open.
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
    options: dict[str, Any] = {}
    if follower:
        options = {"reader": follower.reader, "on_orders": follower.match}
    try:
        return InputJournal(
            _journal_path(settings, instance), identity, settings.packing, settings.sync, salvage, say, **options
        )
    except JournalIsOthers:
        raise
    except JournalRefused as error:
        raise UserError(str(error)) from error
    except OSError as error:
        sentence = f"cannot keep a journal in {settings.journal}: {error.strerror or error}"
        if error.errno in DISK_ERRORS:
            raise OSError(sentence) from error
        raise UserError(sentence) from error


def _resumed_session(
    name: str, gateway_link: Link, journal: InputJournal, follower: Follower | None = None
) -> ResumedSession:
    """Return a session that goes on with a journal. After a break it listens again where the gateway connected."""
    from matching_engine.recovering.resumed_session import ResumedSession

    url = gateway_link.url
    return ResumedSession(journal, gateway_link, lambda _: listen(url, link_token(name, url)), follower)


def open_gateway(
    name: str,
    engine_url: str,
    reporter_url: str,
    settings: RunSettings,
    streams: GatewayStreams,
    reports_thread_usage: bool = False,
    instance: int = 1,
    patience_s: float | None = None,
) -> Gateway:
    """Return a gateway's service, which writes the bytes of orders and of answers to the `streams`.

    `engine_url`: the URL of its engine; if there are several, the URLs of engines 1, 2, ..., with a space between.
    `patience_s`: how long the gateway waits for engine and reporter to listen; None for the settings' timeout.
    """
    import_in_turn("gateway", "gateway.service")
    until_ns = _deadline_ns(patience_s or settings.timeout_s)
    reporter = _to_reporter(name, named("gateway", instance), reporter_url, settings, until_ns)
    if settings.engines > 1:
        return _gateway_of_engines(
            name, engine_url.split(), reporter, settings, streams, reports_thread_usage, instance, until_ns
        )

    def connect_to_engine(until_ns: int) -> Link:
        return connect(engine_url, link_token(name, engine_url), until_ns)

    engine_link = connect_to_engine(until_ns)
    both_streams = streams.orders, streams.answers[0]
    if not settings.journals:
        from gateway.service import Gateway

        return Gateway(settings, run_id(name), engine_link, reporter, both_streams, reports_thread_usage, instance)
    from gateway.recovering.gateway import RecoveringGateway
    from transports.renewable import RenewableLink

    renewable_link = RenewableLink(engine_link, connect_to_engine)
    service = RecoveringGateway(
        settings, run_id(name), renewable_link, reporter, both_streams, reports_thread_usage, instance
    )
    service.unrecorded = cast(
        "SourceLink", reporter
    ).unrecorded  # _to_reporter gives a SourceLink if there are journals
    return service


def _gateway_of_engines(
    name: str,
    engine_urls: Sequence[str],
    reporter: Link,
    settings: RunSettings,
    streams: GatewayStreams,
    reports_thread_usage: bool,
    instance: int,
    until_ns: int,
) -> Gateway:
    """Return the service of a gateway with a session at each of several engines. UserError if an address is missing."""
    from gateway.engines.gateway import GatewayOfEngines
    from gateway.engines.sessions import EngineLinks, EngineSession

    if len(engine_urls) != settings.engines:
        reporter.close()
        raise UserError(
            f"--engine has {counted(len(engine_urls), 'addresses')}, and --engines is {settings.engines}: give an "
            f"address for each engine, in quotes, with a space between"
        )
    sessions: list[EngineSession] = []
    try:
        for number, url in enumerate(engine_urls, start=1):
            link = connect(url, link_token(name, url), until_ns)
            sessions.append(EngineSession(number, link, streams.answers[number - 1]))
    except BaseException:
        for session in sessions:
            session.link.close(0)
        reporter.close()
        raise
    links = EngineLinks(sessions)
    return GatewayOfEngines(settings, run_id(name), links, reporter, streams.orders, reports_thread_usage, instance)
