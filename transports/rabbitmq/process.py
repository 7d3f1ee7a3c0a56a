"""A running node seen from outside: its address, and the processes of a node in a folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from transports.servers.accepted import accepted_sockets
from transports.servers.usage import ProcessUsage, cpu_ns_of


@dataclass(frozen=True)
class NodeAddress:
    """The address of a running node, our user there, and the node's process; other processes can use it, too."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str
    pid: int
    about: Mapping[str, Any] = field(repr=False)

    @property
    def url(self) -> str:
        """The URL without the password."""
        scheme = "amqps" if self.facts()["settings"].get("keys") else "amqp"
        return f"{scheme}://{self.user}@{self.host}:{self.port}"

    def facts(self) -> dict[str, Any]:
        """product, version, erlang, pid, port, ready_after_s, settings."""
        return dict(self.about)

    def accepted(self) -> list[dict[str, Any]]:
        """Local, peer and tcp_nodelay of each connection that the node has accepted. OSError if we may not look."""
        return accepted_sockets(self.pid, self.port)

    def cpu_ns(self) -> int:
        """CPU time by one call of the kernel; `usage` reads a file for each thread. OSError if the node is gone."""
        return cpu_ns_of(self.pid)

    def usage(self) -> ProcessUsage:
        """The resources that the node has used, read from /proc. OSError if the node is gone."""
        return ProcessUsage.of(self.pid)


def nodes_left_in(folder: Path) -> list[psutil.Process]:
    """The processes of our user whose command line has the home of a node in this folder."""
    home = str(folder / "home")
    return [process for process in psutil.process_iter() if _is_ours_with(process, home)]


def _is_ours_with(process: psutil.Process, argument: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.uids().effective == os.geteuid()) and argument in process.cmdline()
    return False
