"""Prepares the first measurement: plans the cells, and sets up what all cells share.

All cells of a benchmark share brokers, the watchdog's process group, and kernels that are loaded before roles fork.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exchange.settings import TRANSPORT_SETTINGS, RunSettings
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.launching.component import settle_down
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.checks import leaves_a_host
from exchange_simulation.launching.launch.broker_watch import accepted_by
from exchange_simulation.launching.launch.brokers import Brokers, broker_of_run
from exchange_simulation.launching.launch.places import free_place
from exchange_simulation.launching.launch.threads import interpreter_shared
from exchange_simulation.launching.network.profile import parse
from exchange_simulation.launching.priority import processors_of
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.disk import disk_facts
from exchange_simulation.launching.transport_checks import (
    check_server,
    network_fits,
    runs_in_one_process,
    schemes_that_fit,
)
from exchange_simulation.launching.transport_defaults import with_transport_defaults
from exchange_simulation.launching.transport_urls import guarantee_of, split_run_settings
from exchange_simulation.messaging import round_trips
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.flow import ceiling_per_s
from exchange_simulation.messaging.kernel_loading import load_by_failed_connect, load_with_messages
from exchange_simulation.messaging.point import LOCAL, Settings, brokers_of, in_each_network, networks_of, size_in_words
from exchange_simulation.messaging.roles import CONSUMER, HOSTS, PUBLISHER, Links, Role, check_descriptors
from transports.base import Pattern
from transports.declaration import BrokerServer, RunningBroker
from transports.registry import has_broker, scheme_of, transport_of

if TYPE_CHECKING:
    from exchange_simulation.launching.network.network import Network
    from exchange_simulation.messaging.hosts.benchmark_hosts import BenchmarkHosts

NEVER_TOO_FAST_PER_S = 100_000.0
"""Messages can always be made at rates below this."""


@dataclass(frozen=True)
class BenchmarkPlan:
    """The cells to be measured."""

    cells: Sequence[Cell]
    left_out: Sequence[str]
    """The reasons why other cells are left out, each once."""

    def patterns(self, benchmark: BenchmarkDefinition) -> dict[str, list[Pattern]]:
        """Patterns of each transport's links that are not pairs, each once."""
        patterns_by_transport: dict[str, list[Pattern]] = {}
        for cell in self.cells:
            patterns = patterns_by_transport.setdefault(cell.transport, [])
            patterns += [pattern for pattern in benchmark.patterns(cell) if pattern not in patterns]
        return patterns_by_transport


def plan_of(benchmark: BenchmarkDefinition, settings: Settings) -> BenchmarkPlan:
    """Return a cell for each point over each transport; unsupported cells are left out.

    A transport that does not fit the settings' network, Nagle's algorithm, hosts or brokers is left out if another
    transport fits them. UserError if no cell over a fitting transport can be measured, or no cell at all.
    """
    points = in_each_network(benchmark.points(settings), settings)
    left_out: list[str] = []
    cells: list[Cell] = []
    for transport in settings["transport"]:
        cells_over_transport = [Cell(transport, point, settings) for point in points]
        plan = _plan_over_transport(benchmark, cells_over_transport)
        cells += plan.cells
        left_out += plan.left_out
    if not cells:
        raise UserError("; ".join(left_out))
    _check_options_with_hosts(settings)
    _check_cpus(settings.get("cpus") or {})
    cells.sort(key=lambda cell: points.index(cell.point))  # a point over each transport, then the next point
    return BenchmarkPlan(cells, left_out)


def _plan_over_transport(benchmark: BenchmarkDefinition, cells: Sequence[Cell]) -> BenchmarkPlan:
    """Return the cells over one transport that can be measured. UserError if the transport fits, and none can be."""
    measured: list[Cell] = []
    reasons: list[str] = []
    fits = False
    for cell in cells:
        reason = _why_unfit(cell)
        if reason is None:
            fits = True
            reason = benchmark.why_unsupported(cell) or _why_too_much(cell)
        if reason:
            reasons.append(f"{cell.transport}: {reason}")
        else:
            measured.append(cell)
    left_out = unique(reasons)
    if fits and not measured:
        raise UserError("; ".join(left_out))
    return BenchmarkPlan(measured, left_out)


def _check_cpus(cpus: Mapping[str, int]) -> None:
    """UserError for a processor that this process may not use."""
    allowed = processors_of()
    for host, cpu in cpus.items():
        if cpu not in allowed:
            raise UserError(f"--cpus is {host}={cpu}; the processors here are {', '.join(map(str, allowed)) or 'none'}")


def _why_unfit(cell: Cell) -> str | None:
    """A sentence if the transport cannot have the network, Nagle's algorithm or the brokers that were asked for."""
    return _why_no_nagle(cell) or _why_no_network(cell) or _why_no_hosts(cell) or _why_no_broker(cell)


def _why_no_nagle(cell: Cell) -> str | None:
    nagle = cell.settings.get("nagle") or ()
    scheme = scheme_of(cell.transport)
    if set(nagle) - {"broker"} and scheme not in transport_of(scheme).over_tcp:
        return f"--nagle is {','.join(nagle)}, and it has no TCP sockets"
    if "broker" in nagle and not cell.has_broker:
        return "--nagle broker, and it has no broker"
    if "broker" in nagle and "://" in cell.transport:
        return f"--nagle broker, and that broker is not ours: say {scheme} alone"
    return None


def _why_no_network(cell: Cell) -> str | None:
    network = cell.network
    transport = transport_of(scheme_of(cell.transport))
    if not network_fits(network, transport, cell.transport):
        fitting = schemes_that_fit(partial(network_fits, network))
        return f"--network is {network}, where this transport cannot be measured: use {fitting}, without an address"
    if network != LOCAL and cell.point.get("preloaded"):
        return f"--network is {network}, where nothing can be preloaded"
    return None


def _why_no_hosts(cell: Cell) -> str | None:
    """A sentence if the transport cannot leave a host, or if something of the cell is possible on this host only."""
    hosts = cell.settings.get("hosts")
    if not hosts:
        return None
    scheme = scheme_of(cell.transport)
    if runs_in_one_process(cell.transport) or not leaves_a_host(transport_of(scheme), scheme):
        return f"--hosts is {hosts}, and this transport cannot leave a host: use {schemes_that_fit(leaves_a_host)}"
    if cell.point.get("preloaded"):
        return f"--hosts is {hosts}, where nothing can be preloaded"
    if cell.brokers > 1:
        return f"--hosts is {hosts}, with one broker, and --brokers is {cell.brokers}"
    return None


def _check_options_with_hosts(settings: Settings) -> None:
    """UserError for an option that holds for this host only, beside --hosts."""
    hosts = settings.get("hosts")
    if not hosts:
        return
    refusal = f"--hosts is {hosts}; it does not go together with"
    if tuple(networks_of(settings)) != (LOCAL,):
        raise UserError(f"{refusal} --network: it makes hosts of its own")
    if settings.get("cpus"):
        raise UserError(f"{refusal} --cpus: it places roles on processors of this host")


def _why_no_broker(cell: Cell) -> str | None:
    """A sentence if the transport has no broker to place, or cannot have as many brokers as the cell."""
    if "broker" in (cell.settings.get("cpus") or {}) and not cell.has_broker:
        return "--cpus broker, and it has no broker"
    if cell.brokers == 1:
        return None
    if not cell.has_broker:
        return f"--brokers is {cell.brokers}, and it has none"
    if "://" in cell.transport:
        return f"--brokers is {cell.brokers}, and that broker is not ours: say {scheme_of(cell.transport)} alone"
    return None


def _why_too_much(cell: Cell) -> str | None:
    """A sentence if one publisher's messages alone are more than a link of the network carries."""
    load = cell.load
    if load is None:
        return None
    most_per_s = carried_per_s(cell)
    if load.highest_per_s <= most_per_s:
        return None
    size = math.floor(cell.size * most_per_s / load.highest_per_s)
    return f"at {load.highest_per_s:,.0f} messages/s --network {cell.network} carries at most {size:,} bytes a message"


def carried_per_s(cell: Cell) -> float:
    """Messages/s that fill a link of the network by the bytes of the messages alone; infinite without a network."""
    rate_bit_per_s = parse(cell.network).rate_bit_per_s
    if not rate_bit_per_s:
        return math.inf
    return rate_bit_per_s / 8 / cell.size


def check_cells(benchmark: BenchmarkDefinition, cells: Iterable[Cell]) -> list[int]:
    """Count each cell's roles. UserError if a cell's rate is too high, or the launcher has too few descriptors.

    The launcher needs a descriptor for the pipe to each role, and for each port that is reserved.
    """
    counts: list[int] = []
    for cell in cells:
        _check_rate(cell)
        ports: list[str] = []
        roles = len(benchmark.roles(cell, _links_that_note_ports(cell.transport, ports)))
        who = counted(roles, "roles")
        if ports:
            who += f" and {counted(len(ports), 'ports')}"
        check_descriptors(roles + len(ports), f"{cell}: {who} need a descriptor each")
        counts.append(roles)
    return counts


def check_hosts(benchmark: BenchmarkDefinition, cells: Sequence[Cell], settings: Settings) -> None:
    """UserError if the roles of a cell cannot find each other on the hosts of --hosts, or are open to other hosts."""
    if not settings.get("hosts"):
        return
    from exchange_simulation.messaging.hosts.benchmark_hosts import check_benchmark_hosts

    listening: list[str] = []
    for cell in cells:
        benchmark.roles(cell, _links_that_note_ports(cell.transport, listening))
    check_benchmark_hosts(settings, unique(cell.transport for cell in cells), set(listening))


def _check_rate(cell: Cell) -> None:
    """UserError if messages of a cell cannot even be made at its rate."""
    load = cell.load
    if load is None or load.highest_per_s < NEVER_TOO_FAST_PER_S:
        return
    ceiling = ceiling_per_s(cell.size)
    if load.highest_per_s > ceiling:
        raise UserError(
            f"--rate is {load.highest_per_s:,.0f}: a publisher makes at most {ceiling:,.0f} messages of "
            f"{size_in_words(cell.size)} a second here, before any transport: give less, or max"
        )


def _links_that_note_ports(transport: str, ports: list[str]) -> Links:
    """Links that reserve no ports and are never opened; `ports` gets the host of each port that they would need."""

    def find_place(kind: str, _path: Path, host: str) -> str:
        if kind == "port":
            ports.append(host)
        return "127.0.0.1:0"

    url = transport if "://" in transport else f"{scheme_of(transport)}://imagined"
    return Links(url, "imagined", Path(), find_place)


class Setup:
    """A context with everything that all cells share: brokers, the network, the process group, and loaded kernels.

    `patterns`: patterns of each transport's links that are not pairs. `settings`: delivery and the like. `brokers`
    starts private brokers. `network`: a profile, or LOCAL.
    """

    def __init__(
        self,
        patterns: Mapping[str, Sequence[Pattern]],
        settings: Settings,
        brokers: Brokers,
        *,
        network: str = LOCAL,
    ) -> None:
        for transport, patterns_of_transport in patterns.items():
            _check_transport(transport)
            _run_settings_of(transport, settings, patterns_of_transport)
        self._settings = settings
        self._nagle = tuple(settings.get("nagle") or ())
        self._patterns = patterns
        self._brokers = brokers
        self._profile = parse(network)
        self._brokers_by_transport: dict[str, list[RunningBroker]] = {}
        """The brokers of the transports that have some."""
        self.network: Network | None = None
        self.hosts: BenchmarkHosts | None = None
        self.disk: dict[str, Any] | None = None
        """The disk of the brokers that keep messages when they end; None if there are none."""
        self.broker_versions: dict[str, str] = {}
        """Product and version of the broker of each transport that has one on this host."""

    def __enter__(self) -> Setup:
        with contextlib.ExitStack() as stack:
            self._processes = stack.enter_context(ProcessGroup())
            self.network = self._network_up(stack)
            self.hosts = self._hosts_up(stack)
            brokers = self._brokers
            if self.network is not None:
                brokers = stack.enter_context(Brokers(self._processes, self.network))
            for transport in self._patterns:
                if has_broker(transport):
                    shared = self._brokers_of(transport, brokers, stack)
                    self._brokers_by_transport[transport] = shared
                    if shared[0].server:
                        self.broker_versions[transport] = _product_and_version(shared[0].server)
            if any(map(runs_in_one_process, self._patterns)):
                stack.enter_context(interpreter_shared())
            for transport in self._patterns:
                self._load(transport)
            self.disk = self._disk()
            round_trips.load()  # a fork that loads these kernels takes 10 ms for its first round trip
            settle_down()  # forks share all objects so far, which are neither collected nor moved from now on
            stack.callback(gc.enable)
            self._stack = stack.pop_all()
        return self

    def _network_up(self, stack: contextlib.ExitStack) -> Network | None:
        """The network, with a host for the roles that begin and one for the others; None on loopback."""
        profile = self._profile
        if profile.is_local:
            return None
        from exchange_simulation.launching.network.network import Network

        hosts: tuple[str, ...] = HOSTS
        if any(map(has_broker, self._patterns)):
            hosts = (*HOSTS, "broker")
        return stack.enter_context(Network.up(profile, hosts, unshaped=(), process_group=self.group))

    def _hosts_up(self, stack: contextlib.ExitStack) -> BenchmarkHosts | None:
        """The hosts of --hosts, with what runs there; None if all roles are on this host."""
        if not self._settings.get("hosts"):
            return None
        from exchange_simulation.messaging.hosts.benchmark_hosts import BenchmarkHosts

        return stack.enter_context(BenchmarkHosts.up(self._settings, self._patterns, self._processes))

    @property
    def sees_all_roles(self) -> bool:
        """Whether the counters of this machine have the work of all roles."""
        return self.hosts is None or self.hosts.all_on_this_machine

    def _disk(self) -> dict[str, Any] | None:
        """Measure the disk of the first private broker whose messages survive its end; None if there is none."""
        for transport, brokers in self._brokers_by_transport.items():
            guarantee = guarantee_of(transport, _run_settings_of(transport, self._settings).as_dict())
            if guarantee is not None and guarantee.keeps_messages and brokers[0].folder is not None:
                return disk_facts(brokers[0].folder)
        return None

    def _load(self, transport: str) -> None:
        """Load the kernels of the transport's links, by sending messages where that is possible."""
        is_broker_elsewhere = self.network is not None or self.hosts is not None
        if is_broker_elsewhere and has_broker(transport):
            load_by_failed_connect(scheme_of(transport), self._patterns[transport])
            return
        with self.links(transport, is_local=True) as links:
            load_with_messages(links, self._patterns[transport])

    def enter_host(self, role: Role) -> None:
        """Move this process, or thread, to the host and the processor of the role that it plays."""
        host = PUBLISHER if role.begins else CONSUMER
        if self.network is not None:
            self.network.enter(host)
        cpus = self._settings.get("cpus") or {}
        if host in cpus:
            os.sched_setaffinity(0, {cpus[host]})

    def accepted(self, server: BrokerServer) -> list[dict[str, Any]]:
        """The broker's sockets, as the kernel reports them; empty if this process may not see them."""
        return accepted_by(server, "broker" not in self._nagle)

    def _brokers_of(self, transport: str, brokers: Brokers, stack: contextlib.ExitStack) -> list[RunningBroker]:
        """The brokers of a transport, as many as its cells have at most; private ones are started."""
        most = max(brokers_of(self._settings)) if "://" not in transport else 1
        run_settings = _run_settings_of(transport, self._settings)
        if self.hosts:
            return [self.hosts.broker_of(run_settings, number, stack) for number in range(1, most + 1)]
        return [broker_of_run(run_settings, brokers, number) for number in range(1, most + 1)]

    def servers(self, cell: Cell) -> list[BrokerServer]:
        """The servers of the cell's brokers that run on this host."""
        brokers = self._brokers_by_transport.get(cell.transport, [])[: cell.brokers]
        return [broker.server for broker in brokers if broker.server]

    @property
    def group(self) -> int:
        """The process group of roles, which ends with us."""
        return self._processes.id

    @contextlib.contextmanager
    def links(self, transport: str, is_local: bool = False, brokers: int = 1) -> Iterator[Links]:
        """Yield the links of one cell, under a new name; ports stay reserved until the context ends.

        `is_local`: on loopback, also if there is a network. `brokers`: the number of brokers that share the links.
        """
        with contextlib.ExitStack() as stack:
            shared = self._brokers_by_transport.get(transport, [])[:brokers]
            token = f"bench-{secrets.token_hex(6)}"
            network = None if is_local else self.network
            hosts = None if is_local else self.hosts
            if hosts:
                stack.callback(hosts.release_ports)

            def find_place(kind: str, path: Path, host: str) -> str:
                if hosts:
                    return hosts.free_place(host, stack)
                return free_place(kind, path, stack, network, host)

            links = Links(transport, token, self._processes.folder, find_place, self._nagle, shared)
            yield links.at_broker(0)

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _product_and_version(server: BrokerServer) -> str:
    """For example: RabbitMQ 3.10.8, Erlang 25.2.3; nats-server 2.10.22. Empty if the server tells neither."""
    facts = server.facts()
    words = " ".join(str(facts[name]) for name in ("product", "version") if name in facts)
    return f"{words}, Erlang {facts['erlang']}" if "erlang" in facts else words


def _run_settings_of(transport: str, settings: Settings, patterns: Sequence[Pattern] = ()) -> RunSettings:
    """The settings of a run with these options. UserError for a mistake in the transport's options or patterns.

    A transport's URL may have an option of a run, as in amqp?delivery=durable, so that one benchmark compares several.
    """
    plain_transport, settings_in_url = split_run_settings(transport)
    for name in settings_in_url:
        option = name.replace("_", "-")
        if name not in settings:
            raise UserError(f"{transport}: links of this benchmark have several guarantees: leave {option} out")
        if settings[name] is not None:
            raise UserError(f"{transport}: --{option} {settings[name]} is given, too: say it once")
    nagle = tuple(role for role in settings.get("nagle") or () if role == "broker")
    cpus: dict[str, int] = {}
    transport_settings: dict[str, Any] = {}
    if has_broker(transport):
        cpus = {host: cpu for host, cpu in (settings.get("cpus") or {}).items() if host == "broker"}
        transport_settings = {name: settings.get(name) for name in TRANSPORT_SETTINGS}
        if "delivery" not in settings:  # the benchmark's links have several guarantees
            transport_settings["delivery"] = "durable"
    transport_settings |= settings_in_url
    run_settings = RunSettings(transport=plain_transport, orders=1, nagle=nagle, cpus=cpus, **transport_settings)
    return with_transport_defaults(run_settings, patterns)


def _check_transport(transport: str) -> None:
    """UserError if there is no such transport, if a library or a server is missing, or if it names a link's place."""
    scheme = scheme_of(transport)
    check_server(transport)
    if "://" in transport and not has_broker(transport):
        raise UserError(f"--transport is {transport}; say {scheme} alone: a place is found for each link")
