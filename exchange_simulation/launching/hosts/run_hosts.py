"""The hosts of one run: where each component runs, where peers find it, and what is brought back from there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.broker_on_host import broker_on_host
from exchange_simulation.launching.hosts.checks import BROKER, checked_hosts
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
from exchange_simulation.launching.hosts.hosts_file import HERE, LOOPBACK, Host, HostsFile
from exchange_simulation.launching.hosts.ports_here import reserved_here
from exchange_simulation.launching.hosts.shared_ids import machine_id
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.notices import detail, say
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.machine import host_facts, versions
from exchange_simulation.launching.transport_urls import keys_folder_of, with_other_keys
from transports.declaration import RunningBroker
from transports.keys import FILES

RELAY = ("hosts", "relay")
"""The words before the name of the component, which is for whoever looks for its relay among processes."""
LIBRARIES_THAT_MATTER = ("exchange", "commit", "numba", "numpy", "pyzmq", "libzmq")
"""The versions that the user is told of if they differ between hosts."""


class RunHosts:
    """The hosts of a run, each with an agent except this one."""

    def __init__(self, file: HostsFile, agents: Mapping[Host, HostAgent], stack: contextlib.ExitStack) -> None:
        """Ports of this host stay reserved until the stack is closed."""
        self._file = file
        self._agents = agents
        self._stack = stack
        self._keys_here: str | None = None
        self._keys: dict[Host, str] = {}
        self._tapes: dict[str, str] = {}
        self._noise: dict[Host, dict[str, Any] | None] = {}
        self._client_files = ClientFiles(agents)
        self.problems: list[str] = []
        """Sentences about hosts that went while the run was under way."""

    @classmethod
    @contextlib.contextmanager
    def up(cls, settings: RunSettings, processes: ProcessGroup) -> Iterator[RunHosts]:
        """Yield the run's hosts: versions are checked, agents started, keys copied. They end with the context.

        The agents join the group of `processes`. UserError for a mistake in the file, or a host that cannot take part.
        """
        file = checked_hosts(settings)
        lineup = Lineup.of(settings)
        hosts = _hosts_elsewhere(file, lineup)
        here = versions()
        check_versions(hosts, here["exchange"], processes)
        with contextlib.ExitStack() as stack:
            agents = started_agents(hosts, processes, stack)
            run_hosts = cls(file, agents, stack)
            try:
                for agent in agents.values():
                    _warn_of_differences(agent, here)
                    agent.read_clock()
                run_hosts._put_files(settings, lineup)
            except HostProblem as error:
                raise UserError(str(error)) from error
            yield run_hosts

    def _put_files(self, settings: RunSettings, lineup: Lineup) -> None:
        """Copy the keys to each host, and a tape to the hosts of the gateways."""
        self._keys_here = keys_folder_of(settings)
        for host, agent in self._agents.items():
            if self._keys_here:
                copies = [agent.put(Path(self._keys_here) / name, f"keys/{name}") for name in FILES]
                self._keys[host] = str(Path(copies[0]).parent)
        if settings.tape is None:
            return
        from gateway.tape import due_path

        tape = Path(settings.tape)
        for gateway in lineup.gateways:
            agent_of_gateway = self.agent_of(gateway)
            if agent_of_gateway is None:
                continue
            self._tapes[gateway] = agent_of_gateway.put(tape, f"{gateway}/tape.bin")
            due = due_path(tape)
            if due.exists():
                agent_of_gateway.put(due, f"{gateway}/{due_path(Path('tape.bin')).name}")

    def host_of(self, component: str) -> Host:
        """Return the host on which a component runs."""
        return self._file.entry_of(component).host

    def agent_of(self, component: str) -> HostAgent | None:
        """Return the agent of a component's host; None for this host."""
        return self._agents.get(self.host_of(component))

    def free_place(self, component: str) -> str:
        """Return host:port at which peers reach the component. The port stays reserved until the run ends."""
        entry = self._file.entry_of(component)
        address = entry.address or LOOPBACK
        agent = self.agent_of(component)
        if agent is not None:
            try:
                return f"{address}:{agent.reserve(entry.listens_on or LOOPBACK)}"
            except HostGone as error:
                raise UserError(str(error)) from error
        return f"{address}:{self._stack.enter_context(reserved_here(self._file, component))}"

    @property
    def has_broker_elsewhere(self) -> bool:
        """Whether the run's broker is started on another host."""
        return not self.host_of(BROKER).is_here

    def started_broker(self, settings: RunSettings) -> RunningBroker:
        """Start the run's broker on its host; it ends with the run. Its URL has the settings as options. UserError."""
        entry = self._file.entry_of(BROKER)
        try:
            return broker_on_host(self._agents[entry.host], entry, settings, self._keys.get(entry.host))
        except HostGone as error:
            raise UserError(str(error)) from error

    @property
    def broker_address(self) -> str:
        """The address of this host on which a private broker listens."""
        return self._file.entry_of(BROKER).listens_on or LOOPBACK

    def as_listener(self, url: str, component: str) -> str:
        """Return the URL on which a component listens, from the URL to which peers connect."""
        entry = self._file.entry_of(component)
        if entry.listen is None or entry.address is None:
            return url
        return url.replace(f"://{entry.address}:", f"://{entry.listen}:", 1)

    def results_of(self, component: str) -> Path | None:
        """Return the folder for results on the component's host; None for this host's own."""
        agent = self.agent_of(component)
        return agent.results if agent else None

    def tape_of(self, component: str) -> str | None:
        """Return the path of the tape's copy on the component's host; None without a copy."""
        return self._tapes.get(component)

    def with_keys_of(self, component: str, words: list[str]) -> list[str]:
        """Return a component's words with the folder of its host's copy of the keys in place of ours."""
        copied = self._keys.get(self.host_of(component))
        if copied is None or self._keys_here is None:
            return words
        words_on_host = []
        for word in words:
            if word == self._keys_here:
                words_on_host.append(copied)
            else:
                words_on_host.append(with_other_keys(word, self._keys_here, copied))
        return words_on_host

    def put_client_files(self, broker: RunningBroker) -> None:
        """Copy the files that clients of a user's broker read to each host. UserError."""
        self._client_files.put(broker.client_files)

    def environment_on_host_of(self, component: str) -> Mapping[str, str]:
        """Return the environment variables that name copied files on the component's host."""
        return self._client_files.environment_on(self.host_of(component))

    def relay_command(self, component: str) -> list[str] | None:
        """Return the command that starts the component's relay on its host; None for a component of this host."""
        host = self.host_of(component)
        return None if host.is_here else host.command(*RELAY, component)

    def clock_starts(self) -> None:
        """Let the agents on other machines begin to measure the other work there."""
        for host, agent in self._agents.items():
            if not self._is_this_machine(host):
                with self._noted():
                    agent.start_noise()

    def clock_stops(self, relays: Mapping[str, int]) -> None:
        """Take the other work on other machines since `clock_starts`. `relays` are process numbers, by component."""
        for host, agent in self._agents.items():
            if not self._is_this_machine(host):
                with self._noted():
                    self._noise[host] = agent.stop_noise(self._relays_on_machine_of(host, relays))

    def relays_here(self, relays: Mapping[str, int]) -> list[int]:
        """Return the relays on this machine, as in a namespace or behind an sshd here; they are no others' work."""
        return self._relays_on_machine_of(HERE, relays)

    def _is_this_machine(self, host: Host) -> bool:
        """Return True for a host that shares its kernel with the launcher."""
        return self._machine_id_of(host) == machine_id()

    def _machine_id_of(self, host: Host) -> str:
        return machine_id() if host.is_here else self._agents[host].machine_id

    def _relays_on_machine_of(self, host: Host, relays: Mapping[str, int]) -> list[int]:
        """Return the numbers of the relays on a host, and on others that share its kernel."""
        pids = []
        for component, pid in relays.items():
            if self._machine_id_of(self.host_of(component)) == self._machine_id_of(host):
                pids.append(pid)
        return pids

    def bring_back(self, folder: Path) -> None:
        """Copy what the components left on their hosts into the run's folder, and read each clock once more."""
        for agent in self._agents.values():
            with self._noted():
                agent.read_clock()
                files = agent.fetch(folder.name, folder)
                detail(f"fetched from {agent.host.name}: {', '.join(files) or 'nothing'}")

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Note that a host is gone, or that a file of it cannot be written here, and go on. Each is noted once."""
        try:
            yield
        except (HostProblem, click.ClickException) as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))

    def clock_of(self, component: str) -> ClockOffset | None:
        """Return the bounds of the clock of the component's host minus ours; None if they were not measured."""
        agent = self.agent_of(component)
        return SAME_CLOCK if agent is None else agent.clock

    def facts(self, lineup: Lineup) -> list[dict[str, Any]]:
        """Return run.json's `hosts`: each host with its components, facts, versions, clock and other work."""
        by_host: dict[Host, list[str]] = {}
        for name in components_of(self._file, lineup):
            by_host.setdefault(self.host_of(name), []).append(name)
        return [self._facts_of(host, components) for host, components in by_host.items()]

    def _facts_of(self, host: Host, components: list[str]) -> dict[str, Any]:
        addresses = {name: self._file.entry_of(name).address for name in components}
        facts = host_record(host, components, addresses, is_launchers_machine=self._is_this_machine(host))
        agent = self._agents.get(host)
        if agent is None:
            return {**facts, "facts": host_facts(), "versions": versions()}
        facts |= {"facts": agent.facts, "versions": agent.versions}
        if agent.clock is not None:
            facts["clock_offset_us"] = agent.clock.middle_ns / 1e3
            facts["clock_bound_us"] = agent.clock.bound_ns / 1e3
        noise = self._noise.get(host)
        if noise:
            facts["noise"] = noise
        return facts


def _hosts_elsewhere(file: HostsFile, lineup: Lineup) -> list[Host]:
    """Return the hosts of the run's components except this one, each once."""
    hosts: list[Host] = []
    for name in components_of(file, lineup):
        host = file.entry_of(name).host
        if not host.is_here and host not in hosts:
            hosts.append(host)
    return hosts


def components_of(file: HostsFile, lineup: Lineup) -> list[str]:
    """Return the names of the run's components, and of the broker if the file has a table for it."""
    return [*lineup.names, BROKER] if BROKER in file.entries else lineup.names


def _warn_of_differences(agent: HostAgent, here: Mapping[str, Any]) -> None:
    """Tell the user which versions on a host differ from those on this host."""
    different = []
    for name in LIBRARIES_THAT_MATTER:
        version_on_host = agent.versions.get(name)
        if version_on_host != here.get(name):
            different.append(f"{name} {version_on_host or 'unknown'}, here {here.get(name) or 'unknown'}")
    if different:
        say(f"warning: the host {agent.host.name} has other versions: {'; '.join(different)}")
