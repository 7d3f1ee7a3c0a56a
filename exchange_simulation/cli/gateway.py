"""`exchange gateway`: one component, on a host of its own."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from exchange.instances import named
from exchange.settings import RunSettings
from exchange_simulation.launching.options import options_of
from exchange_simulation.launching.setting_warnings import warn_of_rejections, warn_of_spinning
from exchange_simulation.launching.typed_settings import run_settings, without_default_rate

if TYPE_CHECKING:
    from exchange.messages import End
    from exchange_simulation.launching.component import Events
    from gateway.recovering.gateway import RecoveringGateway
    from gateway.recovering.progress import GatewayProgress


@click.command()
@options_of("gateway")
def command(
    engine_url: str,
    reporter_url: str,
    name: str,
    results: str,
    instance: int,
    cpu: int | None,
    launched: bool,
    secure: str | None,
    **given: Any,
) -> None:
    """The gateway: offers random orders at a rate, and times their answers.

    Example: exchange gateway --engine tcp://hostb:7000 --reporter tcp://hostc:7001 --run first --secure DIR
    """
    from exchange_simulation.launching.component import Events, Service, serve
    from exchange_simulation.launching.lineup import READY_S
    from exchange_simulation.launching.recorded_streams import open_streams
    from exchange_simulation.launching.services import open_gateway
    from exchange_simulation.launching.transport_urls import with_keys

    engine_url = " ".join(with_keys(url, secure) for url in engine_url.split())
    reporter_url = with_keys(reporter_url, secure)
    events = Events(named("gateway", instance), launched)
    opened = contextlib.ExitStack()
    settings = run_settings(**given) if launched else _settings_by_hand(engine_url, cpu, **without_default_rate(given))

    def open_service() -> tuple[Service, str]:
        streams = opened.enter_context(open_streams(Path(results) / name, settings, instance, overwrite=launched))
        patience_s = READY_S if launched else None
        service = open_gateway(
            name, engine_url, reporter_url, settings, streams, instance=instance, patience_s=patience_s
        )
        service.on_second = lambda sent, answered: events.say("second", sent=sent, answered=answered)
        if settings.journals:
            _heed_launcher(cast("RecoveringGateway", service), events)
        return service, engine_url

    result = serve(events, open_service, cpu, opened, settings.priority)
    raise SystemExit(1 if result.stopped else 0)


def _heed_launcher(service: RecoveringGateway, events: Events) -> None:
    """Tell the launcher the gateway's progress, and take over the progress of a killed gateway from the launcher."""
    service.on_progress = partial(_tell, events, "gateway") if events.launched else None
    service.on_end = partial(_tell, events, "engine")
    events.on_known = partial(_go_on, service)


def _go_on(service: RecoveringGateway, known: dict[str, Any]) -> None:
    """Let the service continue from the progress of a killed gateway."""
    from gateway.recovering.progress import GatewayProgress

    service.go_on_from(GatewayProgress(**known))


def _tell(events: Events, role: str, known: GatewayProgress | End) -> None:
    """Tell the launcher facts that another process needs to take this one's place if this one is killed."""
    events.say("known", role=role, known=known._asdict())


def _settings_by_hand(engine_url: str, cpu: int | None, **given: Any) -> RunSettings:
    """Return the settings with transport and processor, from which the reporter learns both; a launcher adds them."""
    from exchange_simulation.launching.transport_urls import settings_of_url

    placed = {} if cpu is None else {"gateway": cpu}
    first_engine_url, _, _ = engine_url.partition(" ")
    settings = run_settings(**given, **settings_of_url(first_engine_url), cpus=placed)
    warn_of_rejections(settings)
    warn_of_spinning(settings)
    return settings
