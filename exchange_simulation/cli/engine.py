"""`exchange engine`: one component, on a host of its own."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from exchange.instances import named
from exchange.messages import End
from exchange_simulation.launching.options import options_of
from exchange_simulation.launching.typed_settings import run_settings

if TYPE_CHECKING:
    from exchange_simulation.launching.component import Events
    from matching_engine.recovering.engine import RecoveringEngine


@click.command()
@options_of("engine")
def command(
    url: str,
    reporter_url: str,
    market_data_url: str | None,
    name: str,
    capacity: int | None,
    input_path: str | None,
    with_ids: bool,
    instance: int,
    cpu: int | None,
    launched: bool,
    salvage: bool,
    secure: str | None,
    insecure: bool,
    **given: Any,
) -> None:
    """The matching engine: answers the orders of one gateway, or with --gateways of several.

    Example: exchange engine --listen tcp://0.0.0.0:7000 --reporter tcp://hostc:7001 --run first --secure DIR
    """
    from exchange_simulation.launching.component import Events, Service, serve
    from exchange_simulation.launching.lineup import READY_S
    from exchange_simulation.launching.recorded_streams import open_input
    from exchange_simulation.launching.services import open_engine, open_shared_engine, open_standby
    from exchange_simulation.launching.transport_checks import check_exposure
    from exchange_simulation.launching.transport_urls import with_keys

    urls = [with_keys(address, secure) for address in url.split()]
    url = " ".join(urls)
    reporter_url = with_keys(reporter_url, secure)
    if market_data_url is not None:
        market_data_url = with_keys(market_data_url, secure)
    if not launched:
        for address in urls:
            check_exposure(address, insecure)
        if market_data_url is not None:
            check_exposure(market_data_url, insecure)
    events = Events(named("engine", instance), launched)
    settings = run_settings(**given)
    opened = contextlib.ExitStack()
    common: dict[str, Any] = {"capacity": capacity, "with_ids": with_ids, "instance": instance}
    if not settings.is_market and input_path is not None:
        raise click.UsageError(
            "--input needs --gateways: the orders of one gateway are recorded by exchange gateway --record"
        )

    def took_over(service: RecoveringEngine) -> None:
        _connect_to_launcher(service, events)
        events.took_over(url)

    def open_service() -> tuple[Service, str]:
        if settings.standby:
            return open_standby(name, url, reporter_url, settings, took_over, **common), url
        patience_s = READY_S if launched else None
        if settings.is_market:
            stream = opened.enter_context(open_input(Path(input_path) if input_path else None))
            shared, links = open_shared_engine(
                name,
                urls,
                reporter_url,
                settings,
                stream,
                patience_s=patience_s,
                market_data_url=market_data_url,
                **common,
            )
            shared.on_dropped = lambda gateway: events.say("dropped", gateway=gateway)
            return shared, " ".join(link.url for link in links)
        service, link = open_engine(
            name,
            url,
            reporter_url,
            settings,
            salvage=salvage,
            patience_s=patience_s,
            market_data_url=market_data_url,
            **common,
        )
        if settings.journal:  # open_engine makes a RecoveringEngine then
            _connect_to_launcher(cast("RecoveringEngine", service), events)
        return service, link.url

    result = serve(events, open_service, cpu, opened, settings.priority)
    raise SystemExit(1 if result and result.stopped else 0)


def _connect_to_launcher(service: RecoveringEngine, events: Events) -> None:
    """Join the engine and the launcher. The engine says if it refuses orders because its journal is full.

    The launcher says if the gateway got all its answers and left before a killed engine was started again: nobody will
    connect, so the engine ends. The launcher's line has the gateway's End. The engine also reads it while it waits for
    the gateway.
    """
    service.on_refusal = lambda: events.say("refuses")
    service.while_alone = events.take_waiting_line
    events.on_known = lambda gateway_end: service.finish_for_killed_engine(End(**gateway_end))
    if events.known:
        events.on_known(events.known)
