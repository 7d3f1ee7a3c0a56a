"""`exchange reporter`: one component, on a host of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from exchange.instances import named
from exchange_simulation.launching.files import new_run_folder
from exchange_simulation.launching.options import options_of
from exchange_simulation.launching.priority import without_preempting
from exchange_simulation.launching.typed_settings import run_settings


@click.command()
@options_of("reporter")
def command(
    url: str,
    name: str,
    results: str,
    timeout_s: float,
    pairs: int,
    gateways: int,
    engines: int,
    reporters: int,
    instance: int,
    cpu: int | None,
    launched: bool,
    recover: bool,
    secure: str | None,
    insecure: bool,
) -> None:
    """The stats reporter: writes what gateways and engines measure to the run's folder.

    Example: exchange reporter --listen tcp://0.0.0.0:7001 --run first --secure DIR
    """
    from exchange_simulation.launching.component import Events, Service, serve
    from exchange_simulation.launching.services import open_reporter
    from exchange_simulation.launching.transport_checks import check_exposure
    from exchange_simulation.launching.transport_urls import with_keys

    url = with_keys(url, secure)
    numbers = {"pairs": pairs, "gateways": gateways, "engines": engines, "reporters": reporters}
    instruments = max(engines, 1)  # the reporter needs no more than a number that goes with the engines
    settings = run_settings(timeout_s=timeout_s, instruments=instruments, recover=recover, **numbers)
    if instance > reporters:
        raise click.UsageError(
            f"--instance is {instance}; allowed is 1 to {reporters}, since --reporters is {reporters}"
        )
    events = Events(named("reporter", instance), launched)
    folder = Path(results) / name

    def open_in(make_folder: Callable[[], Path]) -> tuple[Service, str]:
        service, link = open_reporter(
            name, url, make_folder, settings, instance=instance, sources_may_break=not launched
        )
        return service, link.url

    if launched:
        with without_preempting():
            serve(events, lambda: open_in(lambda: folder), cpu)
        return
    check_exposure(url, insecure)
    from exchange_simulation.launching.record.begun import note_begun
    from exchange_simulation.launching.run import conditions_here, record_by_hand

    before = conditions_here(name)

    def begin() -> Path:
        folder = new_run_folder(Path(results), name)
        note_begun(folder, replace(before, settings=numbers), instance)
        return folder

    result = serve(events, lambda: open_in(begin), cpu)
    raise SystemExit(record_by_hand(folder, before, result, instance, settings, cpu))
