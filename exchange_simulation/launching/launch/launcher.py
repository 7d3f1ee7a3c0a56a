"""Launches a run: a network, addresses, and a process for each component. `watch.py` follows the processes."""

from __future__ import annotations

import contextlib
import secrets
import shlex
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from exchange.instances import input_file, instance_of, role_of
from exchange.settings import ROLES, RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import signals_deferred
from exchange_simulation.launching.launch.places import Places, as_seen_by_peers, meeting_places, url_for_role
from exchange_simulation.launching.launch.watch import OnSecond, Watch
from exchange_simulation.launching.lineup import SUBSCRIBER, Lineup, component_of
from exchange_simulation.launching.notices import detail
from exchange_simulation.launching.option_table import arguments
from exchange_simulation.launching.priority import without_preempting
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.outcome import RunOutcome
from exchange_simulation.launching.services import TOKEN
from exchange_simulation.launching.transport_urls import guarantee_of
from transports.base import mask
from transports.registry import has_broker

if TYPE_CHECKING:
    from exchange_simulation.launching.hosts.run_hosts import RunHosts
    from exchange_simulation.launching.launch.broker_watch import BrokerWatch
    from exchange_simulation.launching.launch.brokers import Brokers
    from exchange_simulation.launching.network.network import Network
    from exchange_simulation.launching.packets.capture import Capture


def launch(
    folder: Path,
    settings: RunSettings,
    on_second: OnSecond,
    brokers: Brokers | None,
    until_recorded: contextlib.ExitStack,
) -> tuple[str, RunOutcome]:
    """Run all components to their end. Returns the first engine's URL, and the outcome. UserError for refused settings.

    From the end of the components on, signals are held back until `until_recorded` is closed.
    """
    lineup = Lineup.of(settings)
    with contextlib.ExitStack() as stack:
        processes = stack.enter_context(ProcessGroup())
        group = processes.id
        network = _network(settings, group, stack)
        hosts = _hosts(settings, processes, stack)
        brokers_of_run = _brokers(settings, brokers, processes, network, hosts, stack)
        if brokers_of_run is not None:
            stack.enter_context(brokers_of_run.broker_end_as_cannot_start())
        places = stack.enter_context(meeting_places(settings, processes.folder, brokers_of_run, network, hosts))
        if hosts and places.broker:
            hosts.put_client_files(places.broker)
        secret = "" if places.broker else secrets.token_hex(16)  # a broker admits by a password of its own
        environment = {TOKEN: secret, **places.environment}
        arguments_by_component = component_arguments(folder, settings, places, hosts)
        start = partial(_start, processes, folder, arguments_by_component, environment, network, hosts)
        for name in lineup.processes:
            start(name)
        capture = _capture(settings, places, folder, network, group, stack)
        broker_watch = _broker_watch(places, folder.name, settings, stack)
        restart = start if settings.recover else None
        watch = Watch(processes, lineup, on_second, settings.timeout_s, broker_watch, restart, hosts)
        try:
            with without_preempting():
                watch.follow()
            until_recorded.enter_context(signals_deferred())
        finally:
            watch.close()
        outcome = watch.outcome()
        if hosts:
            from exchange_simulation.launching.hosts.one_way import one_way_times

            hosts.bring_back(folder)
            outcome.hosts = hosts.facts(lineup)
            outcome.one_way_us = one_way_times(folder, lineup, hosts.clock_of)
            outcome.failures += tuple(hosts.problems)
    outcome.network = network.facts if network else None
    outcome.capture = asdict(capture.captured) if capture and capture.captured else None
    if capture and capture.problem:
        outcome.failures += (capture.problem,)
    for log in folder.glob("*.log"):
        if not log.stat().st_size:
            log.unlink()
    return places.first, outcome


def _start(
    processes: ProcessGroup,
    folder: Path,
    arguments_by_component: dict[str, list[str]],
    environment: dict[str, str],
    network: Network | None,
    hosts: RunHosts | None,
    name: str,
) -> None:
    """Start the process `name`: a component's first process, its standby, or a component that is started again.

    Only the first process does without `--standby`: the others follow its journal.
    """
    component = component_of(name)
    role = role_of(component)
    is_first_process = component == name and name not in processes.children
    its_arguments = list(arguments_by_component[component])
    if is_first_process and "--standby" in its_arguments:
        its_arguments.remove("--standby")
    detail(f"starting {name}: exchange {shlex.join([role, *its_arguments])}")
    command = [role, "--launched", *its_arguments]
    log = folder / f"{name}.log"
    relay = hosts.relay_command(component) if hosts else None
    if hosts and relay:
        environment_there = {**environment, **hosts.environment_on_host_of(component)}
        processes.start_on_host(name, relay, command, log, environment_there)
    else:
        prefix = network.prefix(role) if network else ()
        processes.start(name, command, log, environment, prefix)


def _network(settings: RunSettings, group: int, stack: contextlib.ExitStack) -> Network | None:
    """Set up the run's network, which stays until the stack is closed. Returns None if all is on loopback."""
    if settings.network == "local":
        return None
    from exchange_simulation.launching.network.network import Network
    from exchange_simulation.launching.network.profile import parse

    roles = list(ROLES)
    if settings.subscribers:
        roles.append(SUBSCRIBER)
    if has_broker(settings.transport):
        roles.append("broker")
    return stack.enter_context(Network.up(parse(settings.network), tuple(roles), process_group=group))


def _hosts(settings: RunSettings, processes: ProcessGroup, stack: contextlib.ExitStack) -> RunHosts | None:
    """Reach the run's hosts, which are left when the stack is closed. Returns None if all is on this host."""
    if settings.hosts is None:
        return None
    from exchange_simulation.launching.hosts.run_hosts import RunHosts

    return stack.enter_context(RunHosts.up(settings, processes))


def _brokers(
    settings: RunSettings,
    shared: Brokers | None,
    processes: ProcessGroup,
    network: Network | None,
    hosts: RunHosts | None,
    stack: contextlib.ExitStack,
) -> Brokers | None:
    """Return the shared brokers; in a network, over hosts, or without shared ones, brokers that belong to the run.

    None for a transport without a broker.
    """
    if not has_broker(settings.transport):
        return None
    from exchange_simulation.launching.launch.brokers import Brokers

    if hosts:
        return stack.enter_context(Brokers(processes, takes_standing=False, address=hosts.broker_address))
    if shared and not network:
        return shared
    return stack.enter_context(Brokers(processes, network))


def _capture(
    settings: RunSettings,
    places: Places,
    folder: Path,
    network: Network | None,
    group: int,
    stack: contextlib.ExitStack,
) -> Capture | None:
    """Start tcpdump, which runs until the stack is closed. Returns None if the user asked for no capture."""
    if not settings.capture:
        return None
    from exchange_simulation.launching.launch.broker_watch import is_of_this_host
    from exchange_simulation.launching.packets.capture import capture_of

    url = places.first
    if places.broker and network is None and not is_of_this_host(urlsplit(url).hostname or ""):
        raise UserError(f"--capture sees this host's loopback, where no packet of {mask(url)} is: capture there")
    role = "broker" if places.broker else "engine"
    prefix = network.prefix(role) if network else None
    return stack.enter_context(capture_of(places.of_engines, folder, group, prefix))


def _broker_watch(places: Places, run: str, settings: RunSettings, stack: contextlib.ExitStack) -> BrokerWatch | None:
    """Return a watch over the run's broker; None if there is no broker."""
    if places.broker is None:
        return None
    from exchange_simulation.launching.launch.broker_watch import BrokerWatch

    guarantee = guarantee_of(settings.transport, settings.as_dict())
    watch = BrokerWatch(
        places.broker,
        places.link_addresses(run),
        nodelay="broker" not in settings.nagle,
        keeps_messages=guarantee is not None and guarantee.keeps_messages,
    )
    return stack.enter_context(contextlib.closing(watch))


def component_arguments(
    folder: Path, settings: RunSettings, places: Places, hosts: RunHosts | None = None
) -> dict[str, list[str]]:
    """Return the arguments that a user would type after `exchange ROLE` for each component, by the component's name.

    Paths in the arguments are those of the component's host.
    """
    by_component = {}
    for name in Lineup.of(settings).names:
        values = {**vars(settings), **_values_of_component(name, folder, settings, places)}
        if hosts:
            values |= _values_on_host(name, folder.name, values, hosts)
        by_component[name] = arguments(role_of(name), values)
        if hosts:
            by_component[name] = hosts.with_keys_of(name, by_component[name])
    return by_component


def _values_on_host(name: str, run: str, values: dict[str, Any], hosts: RunHosts) -> dict[str, Any]:
    """Return the parameters that differ on the component's host: the address on which it listens, and paths."""
    urls = values["url"].split()
    different: dict[str, Any] = {"url": " ".join(hosts.as_listener(url, name) for url in urls)}
    if role_of(name) == "engine" and values["market_data_url"]:
        different["market_data_url"] = hosts.as_listener(values["market_data_url"], name)
    tape = hosts.tape_of(name)
    if tape is not None:
        different["tape"] = tape
    results = hosts.results_of(name)
    if results is None:
        return different
    different["results"] = results
    if values["input_path"] is not None:
        different["input_path"] = results / run / input_file(instance_of(name))
    return different


def _values_of_component(name: str, folder: Path, settings: RunSettings, places: Places) -> dict[str, Any]:
    """Return a component's parameters that no setting has: run, folder, addresses, number, processor, journal.

    A parameter with several URLs has them in one text, with a space between.
    """
    role = role_of(name)
    instance = instance_of(name)
    reporter = places.reporters[Lineup.of(settings).group_of(name)]
    feeds = list(places.market_data.values())
    urls: list[str] = []
    engine_urls: list[str] = []
    if role == "engine":
        urls = list(places.engines[instance].values())
        engine_urls = urls
        feeds = feeds[instance - 1 : instance]
    elif role == "gateway":
        urls = places.of_gateway(instance)
        engine_urls = urls
    elif role == "reporter":
        urls = [reporter]
    return {
        "name": folder.name,
        "results": folder.parent,
        "url": " ".join(url_for_role(url, role, settings) for url in urls),
        "engine_url": " ".join(url_for_role(as_seen_by_peers(url), role, settings) for url in engine_urls),
        "reporter_url": as_seen_by_peers(reporter),
        "market_data_url": " ".join(feeds) or None,
        "instance": instance,
        "cpu": settings.cpus.get(name, settings.cpus.get(role)),
        "journal": settings.journal or (folder / "journal" if settings.recover else None),
        "recover": settings.journals,
        "input_path": folder / input_file(instance) if settings.record and settings.is_market else None,
    }
