"""`exchange subscriber`: one component, on a host of its own."""

from __future__ import annotations

from typing import Any

import click

from exchange.instances import named
from exchange_simulation.launching.options import options_of
from exchange_simulation.launching.typed_settings import run_settings


@click.command()
@options_of("subscriber")
def command(
    market_data_url: str,
    name: str,
    instance: int,
    cpu: int | None,
    launched: bool,
    secure: str | None,
    **given: Any,
) -> None:
    """A subscriber: receives the market data of an engine (with --engines: of several), counts gaps, times delivery.

    Example: exchange subscriber --market-data 'tcp://hostb:7002?back=7003' --run first --secure DIR
    """
    from exchange_simulation.launching.component import Events, Service, serve
    from exchange_simulation.launching.lineup import READY_S
    from exchange_simulation.launching.services import open_subscriber
    from exchange_simulation.launching.transport_urls import with_keys

    url = " ".join(with_keys(address, secure) for address in market_data_url.split())
    events = Events(named("subscriber", instance), launched)
    settings = run_settings(**given)

    def open_service() -> tuple[Service, str]:
        patience_s = READY_S if launched else None
        return open_subscriber(name, url, settings, instance, patience_s), url

    result = serve(events, open_service, cpu, priority=settings.priority)
    if not launched:
        click.echo(f"subscriber: {result.messages:,} messages, {result.missed:,} missed in {result.gaps:,} gaps")
    raise SystemExit(1 if result.stopped else 0)
