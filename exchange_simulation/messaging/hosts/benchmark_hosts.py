"""The hosts of a benchmark: where publishers, consumers and the broker run, and where peers find them.

The file is that of a run. Without a table of their own, publishers are where the gateway is, and consumers where the
engine is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from exchange.json_records import Record
from exchange.settings import RunSettings
from exchange.unique import unique
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.broker_on_host import broker_on_host, url_for_peers
from exchange_simulation.launching.hosts.checks import BROKER, is_exposed
from exchange_simulation.launching.hosts.client_files import ClientFiles
from exchange_simulation.launching.hosts.clock_offset import SAME_CLOCK, ClockOffset
from exchange_simulation.launching.hosts.host_agents import (
    HostAgent,
    HostGone,
    HostProblem,
    check_versions,
    started_agents,
)
from exchange_simulation.launching.hosts.host_process import host_record
from exchange_simulation.launching.hosts.hosts_file import (
    HERE,
    LOOPBACK,
    Host,
    HostEntry,
    HostsFile,
    read_hosts_file,
)
from exchange_simulation.launching.hosts.shared_ids import clock_id, machine_id
from exchange_simulation.launching.interrupts import signals_deferred
from exchange_simulation.launching.launch.brokers import Brokers, broker_of_run
from exchange_simulation.launching.long_waits import said_if_long
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.machine import host_facts, versions
from exchange_simulation.launching.transport_urls import options_in, with_other_keys
from exchange_simulation.messaging.hosts.role_clocks import RoleClocks
from exchange_simulation.messaging.hosts.role_host import RoleElsewhere, RoleHost
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.roles import CONSUMER, HOSTS, PUBLISHER, Role, RoleResult, kind_of
from transports.base import Pattern, TransportError
from transports.declaration import RunningBroker
from transports.keys import FILES
from transports.registry import has_broker
from transports.sockets import reserved_port

ROLE_OF_RUN = {PUBLISHER: "gateway", CONSUMER: "engine", BROKER: BROKER}
"""The role of a run whose table a kind of role has if the file has none for this kind."""


def check_benchmark_hosts(settings: Settings, transports: Sequence[str], listening: Collection[str]) -> None:
    """UserError if peers could not find a listener, or if other hosts reach one and nothing is encrypted.

    `listening` are the kinds of roles that listen without a broker. With --insecure an open address gets a warning.
    """
    file = read_hosts_file(Path(settings["hosts"]))
    entries = entries_of(file)
    listeners = [kind for kind in HOSTS if kind in listening]
    if starts_broker(transports):
        listeners.append(BROKER)
    for kind in listeners:
        _check_address(file, entries, kind)
    exposed = [f"{kind}s" if kind in HOSTS else kind for kind in listeners if is_exposed(entries[kind])]
    if not exposed or all(map(_keys_of, transports)):
        return
    problem = f"{file.path}: other hosts reach the {' and the '.join(exposed)}, and nothing is encrypted"
    if not settings.get("insecure"):
        advice = "give --transport 'SCHEME?keys=DIR' (exchange keys makes DIR), or --insecure on your own network"
        raise UserError(f"{problem}: {advice}")
    say(f"warning: {problem}")


def _check_address(file: HostsFile, entries: Mapping[str, HostEntry], kind: str) -> None:
    """UserError if a peer on another host must connect to this kind, and the file has no address for it."""
    entry = entries[kind]
    if entry.address is not None:
        return
    for peer in HOSTS:
        host = entries[peer].host
        if host != entry.host:
            title = f"[{kind}]" if kind == ROLE_OF_RUN[kind] else f"[{kind}], or [{ROLE_OF_RUN[kind]}],"
            raise UserError(
                f"{file.path}: {title} has no address, and the {peer}, on {host.name}, connects to it: give "
                f"address, the name or IPv4 address of {entry.host.name} in the network of the benchmark"
            )


def starts_broker(transports: Iterable[str]) -> bool:
    """Return True if the benchmark starts a broker of its own."""
    return any(has_broker(transport) and "://" not in transport for transport in transports)


def entries_of(file: HostsFile) -> dict[str, HostEntry]:
    """Return the entries of publishers, consumers and the broker."""
    entries = {}
    for kind, role_of_run in ROLE_OF_RUN.items():
        entries[kind] = file.entries.get(kind) or file.entry_of(role_of_run)
    return entries


class BenchmarkHosts:
    """The hosts of a benchmark under way: each but this one has an agent, and a process that forks roles."""

    def __init__(self, file: HostsFile, processes: ProcessGroup, with_broker: bool) -> None:
        """`with_broker`: the benchmark starts a broker of its own."""
        self._file = file
        self._entries = entries_of(file)
        self._kinds = (*HOSTS, BROKER) if with_broker else HOSTS
        self._processes = processes
        self._agents: dict[Host, HostAgent] = {}
        self._role_hosts: dict[Host, RoleHost] = {}
        self._keys: dict[Host, dict[str, str]] = {}
        """By host: the folders with its copies of the keys, by our folder."""
        self._client_files = ClientFiles({})
        self._clocks = RoleClocks(dict.fromkeys(HOSTS, SAME_CLOCK), is_one_clock=True)
        """The clocks of the measurement under way."""

    @classmethod
    @contextlib.contextmanager
    def up(
        cls, settings: Settings, patterns: Mapping[str, Sequence[Pattern]], processes: ProcessGroup
    ) -> Iterator[BenchmarkHosts]:
        """Yield the hosts of the file that the settings name: versions are checked, and kernels are loaded there.

        `patterns` are those of each transport's links that are not pairs. What is started joins the group of
        `processes`, and ends with the context. UserError for a mistake in the file, or a host that cannot take part.
        """
        hosts = cls(read_hosts_file(Path(settings["hosts"])), processes, starts_broker(patterns))
        with contextlib.ExitStack() as stack:
            try:
                hosts._start(patterns, stack)
            except HostProblem as error:
                raise UserError(str(error)) from error
            yield hosts

    def _start(self, patterns: Mapping[str, Sequence[Pattern]], stack: contextlib.ExitStack) -> None:
        """Check the versions of all hosts elsewhere, and start what runs there."""
        hosts = self._hosts_elsewhere(self._kinds)
        check_versions(hosts, versions()["exchange"], self._processes)
        self._agents = started_agents(hosts, self._processes, stack)
        self._client_files = ClientFiles(self._agents)
        for number, keys in enumerate(unique(filter(None, map(_keys_of, patterns)))):
            for host, agent in self._agents.items():
                copies = [agent.put(Path(keys) / name, f"keys-{number}/{name}") for name in FILES]
                self._keys.setdefault(host, {})[keys] = str(Path(copies[0]).parent)
        hosts_of_roles = self._hosts_elsewhere(HOSTS)
        for number, host in enumerate(hosts_of_roles, start=1):
            with signals_deferred():
                try:
                    started = RoleHost(host, self._processes.id, self._processes.folder / f"roles-{number}.log")
                except OSError as error:
                    raise UserError(f"the host {host.name} cannot be reached: {error.strerror}") from error
                stack.callback(started.close)
            self._role_hosts[host] = started
            started.load({self._with_keys_of(host, transport): value for transport, value in patterns.items()})
        with said_if_long("the hosts to be ready"):
            for started in self._role_hosts.values():
                started.ready()

    def _hosts_elsewhere(self, kinds: Sequence[str]) -> list[Host]:
        """Return the hosts of these kinds except this one, each once."""
        hosts: list[Host] = []
        for kind in kinds:
            host = self._entries[kind].host
            if not host.is_here and host not in hosts:
                hosts.append(host)
        return hosts

    def broker_of(self, settings: RunSettings, number: int, stack: contextlib.ExitStack) -> RunningBroker:
        """Return the broker of this number, which ends with the stack or with its agent. UserError, CannotStart."""
        entry = self._entries[BROKER]
        if "://" in settings.transport:
            of_user = broker_of_run(settings, stack.enter_context(Brokers(self._processes)), number)
            self._client_files.put(of_user.client_files)
            return of_user
        if entry.host.is_here:
            listens_on = entry.listens_on or LOOPBACK
            brokers = Brokers(self._processes, takes_standing=False, address=listens_on)
            running = broker_of_run(settings, stack.enter_context(brokers), number)
            return replace(running, url=url_for_peers(running.url, listens_on, entry.address or LOOPBACK))
        try:
            return broker_on_host(self._agents[entry.host], entry, settings, None)
        except HostGone as error:
            raise UserError(str(error)) from error

    def free_place(self, kind: str, stack: contextlib.ExitStack) -> str:
        """Return host:port at which peers reach roles of this kind; the port is reserved until `release_ports`.

        A port of this host is reserved until the stack is closed.
        """
        entry = self._entries[kind]
        address = entry.address or LOOPBACK
        listens_on = entry.listens_on or LOOPBACK
        if not entry.host.is_here:
            with self._gone_is_an_error():
                return f"{address}:{self._agents[entry.host].reserve(listens_on)}"
        try:
            port = stack.enter_context(reserved_port(listens_on))
        except (OSError, TransportError) as error:
            raise UserError(f"{self._file.path}: [{kind}]: cannot listen on {listens_on}: {error}") from error
        return f"{address}:{port}"

    def release_ports(self) -> None:
        """Let all hosts release the ports of a measurement that is over."""
        for agent in self._agents.values():
            with contextlib.suppress(HostProblem):  # the next measurement says that the host is gone
                agent.release_ports()

    def start(self, role: Role, patience_s: float) -> RoleElsewhere | None:
        """Start the role on its host; None for a role of this host, which is not started."""
        host = self._role_hosts.get(self._entries[kind_of(role)].host)
        return None if host is None else host.start(role, patience_s)

    def placed(self, roles: list[Role]) -> list[Role]:
        """Read the clocks before a measurement, and return the roles as they are on their hosts.

        A role knows how far its clock is ahead, and listens where its host's table says. UserError if a host is gone.
        """
        clock_ids = {self._clock_id_of(self._entries[kind].host) for kind in HOSTS}
        with self._gone_is_an_error():
            self._clocks = RoleClocks(self._offsets(), is_one_clock=len(clock_ids) == 1)
        return [self._on_its_host(role) for role in self._clocks.with_clocks(roles)]

    def _on_its_host(self, role: Role) -> Role:
        """Return the role; it listens where its host's table says, and has the keys and files of its host."""
        entry = self._entries[kind_of(role)]
        ends = []
        for end in role.ends:
            url = end.url
            if end.listens and entry.listen is not None:
                url = url.replace(f"://{entry.address}:", f"://{entry.listen}:", 1)
            environment = {**end.environment, **self._client_files.environment_on(entry.host)}
            ends.append(replace(end, url=self._with_keys_of(entry.host, url), environment=environment))
        return replace(role, ends=tuple(ends))

    def _with_keys_of(self, host: Host, url: str) -> str:
        """Return the URL with the host's copy of the keys in place of our folder."""
        for keys, copy in self._keys.get(host, {}).items():
            url = with_other_keys(url, keys, copy)
        return url

    def by_launchers_clock(self, roles: Sequence[Role], results: Mapping[str, RoleResult]) -> dict[str, RoleResult]:
        """Return the results, by name, with all of their times by the launcher's clock."""
        by_name = {role.name: role for role in roles}
        return {name: self._clocks.by_launchers_clock(by_name[name], result) for name, result in results.items()}

    def on_this_machine(self, roles: Sequence[Role], usage: Mapping[str, Any]) -> dict[str, Any]:
        """Return the use of the machine by those roles, by name, that share the launcher's machine."""
        return {
            role.name: usage[role.name]
            for role in roles
            if role.name in usage and self._is_this_machine(self._entries[kind_of(role)].host)
        }

    def after_measurement(self) -> list[Record]:
        """Return the facts of each host about a measurement: its roles, its clock, and the other work there.

        `clock_bound_us` is the bound of one-way times, for all hosts together. What a lost host would tell is left out.
        """
        records = []
        kinds_by_host: dict[Host, list[str]] = {}
        for kind in HOSTS:
            kinds_by_host.setdefault(self._entries[kind].host, []).append(kind)
        for host, kinds in kinds_by_host.items():
            record: Record = {"host": host.name, "roles": kinds, "is_launchers_machine": self._is_this_machine(host)}
            with contextlib.suppress(HostProblem):
                record["clock_bound_us"] = self._clocks.bound_us(self._offsets())
                if not record["is_launchers_machine"]:
                    record["noise"] = self._agents[host].stop_noise(self._pids_on_machine_of(host))
            records.append(record)
        return records

    def _offsets(self) -> dict[str, ClockOffset]:
        """Return the bounds of the clock of each kind of role minus the launcher's. HostGone."""
        by_clock: dict[str, ClockOffset] = {self._clock_id_of(HERE): SAME_CLOCK}
        offsets = {}
        for kind in HOSTS:
            host = self._entries[kind].host
            clock = self._clock_id_of(host)
            if clock not in by_clock:
                by_clock[clock] = self._agents[host].clock_now()
            offsets[kind] = by_clock[clock]
        return offsets

    def _clock_id_of(self, host: Host) -> str:
        """Return the id of a host's monotonic clock, which hosts on one machine share."""
        return clock_id() if host.is_here else self._agents[host].clock_id

    def _machine_id_of(self, host: Host) -> str:
        """Return the id of a host's machine, which hosts may share."""
        return machine_id() if host.is_here else self._agents[host].machine_id

    def clock_starts(self) -> None:
        """Let other machines begin to measure their other work."""
        for agent in self._agents_of_other_machines():
            with self._gone_is_an_error():
                agent.start_noise()

    def pids_here(self) -> list[int]:
        """Return the processes on the launcher's machine that fork roles, as behind an sshd here."""
        return self._pids_on_machine_of(HERE)

    @property
    def all_on_this_machine(self) -> bool:
        """True if all roles share the launcher's machine."""
        return all(self._is_this_machine(self._entries[kind].host) for kind in HOSTS)

    def _agents_of_other_machines(self) -> Iterator[HostAgent]:
        for host, agent in self._agents.items():
            if not self._is_this_machine(host):
                yield agent

    def _is_this_machine(self, host: Host) -> bool:
        return self._machine_id_of(host) == machine_id()

    def _pids_on_machine_of(self, host: Host) -> list[int]:
        machine = self._machine_id_of(host)
        return [started.pid for other, started in self._role_hosts.items() if self._machine_id_of(other) == machine]

    def facts(self) -> list[Record]:
        """Return bench.json's `hosts`: each host with its roles, facts, versions and address."""
        kinds_by_host: dict[Host, list[str]] = {}
        for kind in self._kinds:
            kinds_by_host.setdefault(self._entries[kind].host, []).append(kind)
        return [self._facts_of(host, kinds) for host, kinds in kinds_by_host.items()]

    def _facts_of(self, host: Host, kinds: list[str]) -> Record:
        addresses = {kind: self._entries[kind].address for kind in kinds}
        facts = host_record(host, kinds, addresses, is_launchers_machine=self._is_this_machine(host))
        if host.is_here:
            return {**facts, "facts": host_facts(), "versions": versions()}
        return {**facts, "facts": self._agents[host].facts, "versions": self._agents[host].versions}

    @contextlib.contextmanager
    def _gone_is_an_error(self) -> Iterator[None]:
        """Turn HostGone into UserError."""
        try:
            yield
        except HostGone as error:
            raise UserError(str(error)) from error


def _keys_of(transport: str) -> str | None:
    """Return the folder of keys that the options of a transport name; None without keys."""
    return options_in(transport).get("keys")
