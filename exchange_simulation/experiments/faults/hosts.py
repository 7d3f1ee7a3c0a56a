"""Faults in a run over several hosts: which are possible there, and the gateway's clock.

A process on any host can be killed or stopped (relays.py). A fault of sockets or files needs its processes here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from exchange_simulation.experiments.faults.injection import Fault
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.host_agents import HostProblem, check_versions, started_agents
from exchange_simulation.launching.hosts.hosts_file import HERE, HostsFile, read_hosts_file
from exchange_simulation.launching.hosts.shared_ids import clock_id
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.machine import versions

ClockAhead = Callable[[], int]
"""A function that returns the gateway's monotonic clock minus ours, in ns."""


def checked_hosts_file(path: str) -> HostsFile:
    """Return the hosts file of the runs. UserError for a mistake in it, and for a reporter on another host."""
    file = read_hosts_file(Path(path))
    host = file.entry_of("reporter").host
    if not host.is_here:
        raise UserError(
            f"--hosts is {path}: faults reads the spool of the reporter while the run goes on, and that is on "
            f"{host.name}: leave before out of [reporter], and give its address in the network of the run"
        )
    return file


def why_not_over_hosts(fault: Fault, file: HostsFile, over_broker: bool) -> str | None:
    """Return a sentence if the fault is impossible in a run over these hosts; None if it is possible."""
    if fault.network:
        return f"{fault.name} changes the delay of an emulated network, which does not go together with --hosts"
    if fault.needs_broker:
        return f"{fault.name} breaks a broker of this command, and over --hosts each run starts its broker itself"
    if not fault.needs_tcp:
        return None
    if over_broker:
        return f"{fault.name} borrows the sockets of the broker, and over --hosts each run starts its broker itself"
    for role in ("gateway", "engine"):
        host = file.entry_of(role).host
        if not host.is_here:
            return f"{fault.name} borrows the sockets of gateway and engine, and the {role} is on {host.name}"
    return None


@contextlib.contextmanager
def clock_of_gateway(file: HostsFile | None) -> Iterator[ClockAhead]:
    """Yield a function that reads how far the gateway's clock is ahead of ours. UserError if its host cannot be asked.

    Hosts on one machine have one clock.
    """
    host = file.entry_of("gateway").host if file else HERE
    if host.is_here:
        yield lambda: 0
        return
    with ProcessGroup() as processes, contextlib.ExitStack() as stack:
        check_versions([host], versions()["exchange"], processes)
        agent = started_agents([host], processes, stack)[host]
        is_our_clock = agent.clock_id == clock_id()

        def ahead_ns() -> int:
            if is_our_clock:
                return 0
            try:
                return agent.clock_now().middle_ns
            except HostProblem as error:
                raise UserError(str(error)) from error

        yield ahead_ns
