"""Where a node is, who may use it, and what can be told of it without asking it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transports.rabbitmq.usage import NodeUsage, cpu_ns_of


@dataclass(frozen=True)
class NodeAddress:
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str
    pid: int
    about: Mapping[str, Any] = field(repr=False)

    @property
    def url(self) -> str:
        """Without the password."""
        return f"amqp://{self.user}@{self.host}:{self.port}"

    def facts(self) -> dict[str, Any]:
        """product, version, erlang, pid, port, ready_after_s, settings."""
        return dict(self.about)

    def accepted(self) -> list[dict[str, Any]]:
        """Its ends of the connections that it has accepted: local, peer, tcp_nodelay. OSError where we may not look."""
        from transports.rabbitmq.accepted import accepted_sockets

        return accepted_sockets(self.pid, self.port)

    def cpu_ns(self) -> int:
        """One call of the kernel, where `usage` reads a file a thread. OSError where it is gone."""
        return cpu_ns_of(self.pid)

    def usage(self) -> NodeUsage:
        """Cheap: the node is not asked. OSError where it is gone."""
        return NodeUsage.of(self.pid)
