"""Files that clients of a user's broker read, as the certificate of an authority: copied to each host of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.host_agents import HostAgent, HostGone
from exchange_simulation.launching.hosts.hosts_file import Host


class ClientFiles:
    """The copies on all hosts. They are removed with the folders of the agents."""

    def __init__(self, agents: Mapping[Host, HostAgent]) -> None:
        self._agents = agents
        self._copies: dict[Host, dict[str, str]] = {host: {} for host in agents}
        """By host: the path of each copy, by the environment variable that names it."""

    def put(self, files: Mapping[str, Path]) -> None:
        """Copy these files to each host, unless an earlier call did; each is under its environment variable.

        UserError if a file cannot be read, or if a host cannot keep it or is gone.
        """
        for host, agent in self._agents.items():
            for variable, path in files.items():
                if variable in self._copies[host]:
                    continue
                try:
                    self._copies[host][variable] = agent.put(path, f"client-files/{variable}")
                except HostGone as error:
                    raise UserError(str(error)) from error

    def environment_on(self, host: Host) -> Mapping[str, str]:
        """Return the environment variables that name the copies on a host; empty for this host."""
        return self._copies.get(host, {})
