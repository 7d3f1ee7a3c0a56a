"""Launches a run: a network, places to meet, and a process for each component, which `watch.py` follows."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exchange.instances import instance_of, role_of
from exchange.settings import RunSettings
from runs.launch.places import Places, as_seen_by_peers, meeting_places, of_role
from runs.launch.watch import OnSecond, Watch
from runs.lineup import Lineup
from runs.network import network_of
from runs.options import arguments
from runs.packets import capture_of
from runs.process_group import ProcessGroup
from runs.record.outcome import Outcome

if TYPE_CHECKING:
    from runs.launch.broker_watch import BrokerWatch
    from runs.launch.brokers import Brokers


def launch(
    folder: Path, settings: RunSettings, on_second: OnSecond, brokers: Brokers | None = None
) -> tuple[str, Outcome]:
    """Run all components to their end; (the first engine's URL, the outcome). UserError if one refuses its settings."""
    with contextlib.ExitStack() as held:
        processes = held.enter_context(ProcessGroup())
        group = processes.id
        network = held.enter_context(network_of(settings, group))
        places = held.enter_context(meeting_places(settings, processes.folder, group, brokers, network))
        lineup = Lineup.of(settings)
        for name, arguments in component_arguments(folder, settings, places).items():
            there = network.prefix(role_of(name)) if network else ()
            processes.start(name, arguments, folder / f"{name}.log", places.environment, there)
        capture = held.enter_context(capture_of(settings, places.engines.values(), folder, network, group))
        watch = Watch(processes, lineup, on_second, _broker_watch(places, folder.name, settings, held))
        try:
            watch.follow()
        finally:
            watch.close()
        outcome = watch.outcome()
    outcome.network = network.facts if network else None
    outcome.capture = asdict(capture.captured) if capture and capture.captured else None
    for name in lineup.names:
        log = folder / f"{name}.log"
        if not log.stat().st_size:
            log.unlink()
    return places.engines[1], outcome


def _broker_watch(places: Places, run: str, settings: RunSettings, held: contextlib.ExitStack) -> BrokerWatch | None:
    """A watch over the run's broker; None where there is no broker."""
    if places.broker is None:
        return None
    from runs.launch.broker_watch import BrokerWatch

    watch = BrokerWatch(places.broker, places.meetings(run), "broker" not in settings.nagle)
    return held.enter_context(contextlib.closing(watch))


def component_arguments(folder: Path, settings: RunSettings, places: Places) -> dict[str, list[str]]:
    """The words that a user would type after `exchange ROLE` on each component's host, by the component's name."""
    return {
        name: arguments(role_of(name), {**vars(settings), **_own_values(name, folder, settings, places)})
        for name in Lineup.of(settings).names
    }


def _own_values(name: str, folder: Path, settings: RunSettings, places: Places) -> dict[str, Any]:
    """A component's own parameters: the run's name and folder, where it listens and connects, its number and CPU."""
    role, instance = role_of(name), instance_of(name)
    engine, reporter = places.engines[instance], places.reporters[Lineup.of(settings).group_of(name)]
    return {
        "name": folder.name,
        "results": folder.parent,
        "url": of_role(reporter if role == "reporter" else engine, role, settings),
        "engine_url": of_role(as_seen_by_peers(engine), role, settings),
        "reporter_url": as_seen_by_peers(reporter),
        "instance": instance,
        "cpu": settings.cpus.get(name, settings.cpus.get(role)),
    }
