"""Looks whether each host of a file can take part in a run, without a run."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.clock_offset import SAME_CLOCK, ClockOffset
from exchange_simulation.launching.hosts.host_agents import HostAgent, HostProblem, check_versions, started_agents
from exchange_simulation.launching.hosts.hosts_file import Host, HostsFile
from exchange_simulation.launching.hosts.ports_here import reserved_here
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.machine import host_facts, versions


@dataclass(kw_only=True)
class HostFinding:
    """The facts about one host."""

    host: Host
    components: list[str]
    """The titles of its tables in the file: roles, or components as gateway.2."""
    facts: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)
    clock: ClockOffset | None = None
    problems: list[str] = field(default_factory=list)
    """Sentences about what keeps the host from taking part."""


def examined(file: HostsFile) -> list[HostFinding]:
    """Return a finding for each host of the file, in the file's order. A host that fails does not hide the others."""
    titles: dict[Host, list[str]] = {}
    for title, entry in file.entries.items():
        titles.setdefault(entry.host, []).append(title)
    findings = []
    with ProcessGroup() as processes:
        for host, components in titles.items():
            finding = HostFinding(host=host, components=components)
            findings.append(finding)
            try:
                _examine(finding, file, processes)
            except (UserError, HostProblem) as error:
                finding.problems.append(str(error))
    return findings


def _examine(finding: HostFinding, file: HostsFile, processes: ProcessGroup) -> None:
    """Fill in the finding. UserError or HostProblem if the host cannot be asked further."""
    here = versions()
    if finding.host.is_here:
        finding.facts = host_facts()
        finding.versions = here
        finding.clock = SAME_CLOCK
        for component in finding.components:
            _try_listening_here(file, component, finding)
        return
    check_versions([finding.host], here["exchange"], processes)
    with contextlib.ExitStack() as stack:
        agent = started_agents([finding.host], processes, stack)[finding.host]
        finding.facts = agent.facts
        finding.versions = agent.versions
        agent.read_clock()
        finding.clock = agent.clock
        for component in finding.components:
            _try_listening(agent, file, component, finding)


def _try_listening_here(file: HostsFile, component: str, finding: HostFinding) -> None:
    """Reserve a port of this host at the component's address, and note if that fails."""
    try:
        with reserved_here(file, component):
            pass
    except UserError as error:
        finding.problems.append(error.message)


def _try_listening(agent: HostAgent, file: HostsFile, component: str, finding: HostFinding) -> None:
    """Reserve a port at the component's address, and note if that fails."""
    address = file.entry_of(component).listens_on
    if address is None:
        return
    try:
        agent.reserve(address)
    except UserError as error:
        finding.problems.append(error.message)
