"""A run's life: a network, places, components as processes of their own; what comes of them, `watch.py` follows."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from exchange.instances import instance_of, named, role_of
from exchange.settings import RunSettings
from runs.launch.places import Places, as_seen_by_peers, meeting_places, of_role
from runs.launch.watch import OnSecond, Watch
from runs.lineup import Lineup
from runs.network import network_of
from runs.packets import capture_of
from runs.process_group import ProcessGroup
from runs.record.outcome import Outcome

if TYPE_CHECKING:
    from runs.launch.broker_watch import BrokerWatch
    from runs.launch.brokers import Brokers


def launch(
    folder: Path, settings: RunSettings, on_second: OnSecond, brokers: Brokers | None = None
) -> tuple[str, Outcome]:
    """Run it; (the first engine's URL, what came out). UserError where a component refuses its settings."""
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
    """What watches the broker, if there is one."""
    if places.broker is None:
        return None
    from runs.launch.broker_watch import BrokerWatch

    watch = BrokerWatch(places.broker, places.meetings(run), "broker" not in settings.nagle)
    return held.enter_context(contextlib.closing(watch))


def component_arguments(folder: Path, settings: RunSettings, places: Places) -> dict[str, list[str]]:
    """The command, and the arguments that a user would type on each component's host; by the component's name."""
    lineup, shared = Lineup.of(settings), shared_arguments(folder, settings)
    reporters = {
        named("reporter", k): ["--listen", of_role(url, "reporter", settings)] for k, url in places.reporters.items()
    }
    engines = {named("engine", k): ["--listen", of_role(url, "engine", settings)] for k, url in places.engines.items()}
    gateways = {
        named("gateway", k): ["--engine", of_role(as_seen_by_peers(url), "gateway", settings)]
        for k, url in places.engines.items()
    }
    return {
        name: [*own, *_to_reporter(name, lineup, places), *shared[role_of(name)], *_of_one(name, settings)]
        for name, own in (reporters | engines | gateways).items()
    }


def _to_reporter(name: str, lineup: Lineup, places: Places) -> list[str]:
    url = places.reporters[lineup.group_of(name)]
    return [] if role_of(name) == "reporter" else ["--reporter", as_seen_by_peers(url)]


def _of_one(name: str, settings: RunSettings) -> list[str]:
    cpu = settings.cpus.get(name, settings.cpus.get(role_of(name)))
    return ["--instance", str(instance_of(name)), *([] if cpu is None else ["--cpu", str(cpu)])]


def shared_arguments(folder: Path, settings: RunSettings) -> dict[str, list[str]]:
    """By role, what its components are told alike."""
    s = settings
    name = ["--run", folder.name]
    terms = ["--policy", s.policy, "--max-price", str(s.max_price), "--packing", str(s.packing)]
    session = ["--sampling-interval", str(s.sampling_interval), "--timeout", str(s.timeout_s)]
    rate = "max" if s.orders_per_s is None else repr(s.orders_per_s)
    workload = ["--rate", rate, "--arrivals", s.arrivals]
    workload += ["--seed", str(s.seed), "--prices", f"{s.prices[0]}..{s.prices[1]}", "--price-model", s.price_model]
    optional = {
        "--orders": s.orders,
        "--duration": s.duration_s,
        "--window": s.window,
        "--tape": s.tape,
        "--speed": s.speed,
    }
    workload += [word for option, value in optional.items() if value is not None for word in (option, str(value))]
    workload += ["--record"] * s.record
    results = ["--results", str(folder.parent)]
    who = ["--pairs", str(s.pairs), "--reporters", str(s.reporters)]
    return {
        "reporter": [*name, *results, "--timeout", str(s.timeout_s), *who],
        "engine": [*name, *terms, *session],
        "gateway": [*name, *results, *workload, *terms, *session],
    }
