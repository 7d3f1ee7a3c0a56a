"""A run's life: a network, places, components as processes of their own; what comes of them, `watch.py` follows."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from exchange.settings import RunSettings
from experiments.household import Household
from experiments.moment import OnSecond
from experiments.network.of_run import network_of
from experiments.packets.of_run import capture_of
from experiments.places import Places, as_seen_by_peers, meeting_places, of_role
from experiments.status import Outcome
from experiments.watch import ROLES, Watch

if TYPE_CHECKING:
    from experiments.broker_watch import BrokerWatch
    from experiments.brokers_held import Brokers


def launch(
    folder: Path, settings: RunSettings, on_second: OnSecond, brokers: Brokers | None = None
) -> tuple[str, Outcome]:
    """Run it; (the engine's URL, what came out). UserError where a component refuses its settings."""
    with contextlib.ExitStack() as held:
        household = held.enter_context(Household())
        group = household.process_group
        network = held.enter_context(network_of(settings, group))
        places = held.enter_context(meeting_places(settings, household.folder, group, brokers, network))
        arguments = component_arguments(folder, settings, places.engine, places.reporter)
        for role in ROLES:
            there = network.prefix(role) if network else ()
            household.start(role, arguments[role], folder / f"{role}.log", places.environment, there)
        capture = held.enter_context(capture_of(settings, places.engine, folder, network, group))
        watch = Watch(household, on_second, _broker_watch(places, folder.name, settings, held))
        try:
            watch.follow()
        finally:
            watch.close()
        outcome = watch.outcome()
    outcome.network = network.facts if network else None
    outcome.capture = asdict(capture.captured) if capture and capture.captured else None
    for role in ROLES:
        log = folder / f"{role}.log"
        if not log.stat().st_size:
            log.unlink()
    return places.engine, outcome


def _broker_watch(places: Places, run: str, settings: RunSettings, held: contextlib.ExitStack) -> BrokerWatch | None:
    """Where there is a broker, someone who looks at it."""
    if places.broker is None:
        return None
    from experiments.broker_watch import BrokerWatch

    return held.enter_context(contextlib.closing(BrokerWatch(places.broker, run, "broker" not in settings.nagle)))


def component_arguments(folder: Path, settings: RunSettings, engine: str, reporter: str) -> dict[str, list[str]]:
    """The arguments that a user would type on each component's host."""
    s = settings
    name = ["--run", folder.name]
    terms = ["--policy", s.policy, "--max-price", str(s.max_price), "--packing", str(s.packing)]
    session = ["--sampling-interval", str(s.sampling_interval), "--timeout", str(s.timeout_s)]
    to_reporter = ["--reporter", as_seen_by_peers(reporter)]
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
    cpu = {role: ["--cpu", str(cpu)] for role, cpu in s.cpus.items()}
    reporting = ["--listen", of_role(reporter, "reporter", s), *name, *results, "--timeout", str(s.timeout_s)]
    matching = ["--listen", of_role(engine, "engine", s), *to_reporter, *name, *terms, *session]
    offering = ["--engine", of_role(as_seen_by_peers(engine), "gateway", s), *to_reporter, *name, *results]
    return {
        "reporter": [*reporting, *cpu.get("reporter", [])],
        "engine": [*matching, *cpu.get("engine", [])],
        "gateway": [*offering, *workload, *terms, *session, *cpu.get("gateway", [])],
    }
