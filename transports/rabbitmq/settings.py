"""NodeSettings: the settings of a private node, written for RabbitMQ as Erlang terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transports.amqp.switches import ALLOCATORS, BUSY_WAITS, MOST_SCHEDULERS
from transports.base import TransportError


class RabbitMqError(TransportError):
    """The base of all errors of a private node."""


class BadNodeSetting(RabbitMqError):
    """A value in NodeSettings that makes no sense."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field} is {value!r}: it takes {allowed}")


@dataclass(frozen=True)
class NodeSettings:
    nodelay: bool = True
    """TCP_NODELAY of the sockets that the node accepts."""
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    """Buffers of each accepted socket; None leaves them to the kernel."""
    memory_mark: float = 0.4
    """Publishers pause while the node uses more memory than this. A value up to 1 is a share of the machine's memory, a
    larger one is a number of bytes."""
    disk_limit_bytes: int = 50_000_000
    """Publishers pause while less is free on the folder's disk."""
    keys: str | None = None
    """The folder of the keys by which the node and its clients know each other: it then speaks TLS only."""
    schedulers: int | None = None
    """Threads of Erlang that run its processes; None leaves it to Erlang: one for each processor."""
    busy_wait: str | None = None
    """How long a scheduler without work spins before it sleeps, one of BUSY_WAITS; None leaves it to RabbitMQ."""
    allocator: str | None = None
    """The strategy by which Erlang looks for free memory for heaps and binaries, one of ALLOCATORS."""
    extra: Mapping[str, str] = field(default_factory=dict, hash=False)
    """More parameters of the `rabbit` application, as Erlang terms: {"heartbeat": "0"}."""

    def __post_init__(self) -> None:
        for name in ("send_buffer_bytes", "receive_buffer_bytes"):
            value = getattr(self, name)
            if value is not None and not 1024 <= value <= 1 << 30:
                raise BadNodeSetting(name, value, "bytes, 1024..1073741824, or None")
        if not 0 <= self.memory_mark < 1 << 50:
            raise BadNodeSetting("memory_mark", self.memory_mark, "a share of the memory, 0..1, or bytes")
        if self.disk_limit_bytes < 0:
            raise BadNodeSetting("disk_limit_bytes", self.disk_limit_bytes, "bytes, not negative")
        if self.schedulers is not None and not 1 <= self.schedulers <= MOST_SCHEDULERS:
            raise BadNodeSetting("schedulers", self.schedulers, f"a number, 1..{MOST_SCHEDULERS}, or None")
        for name, words in (("busy_wait", BUSY_WAITS), ("allocator", ALLOCATORS)):
            value = getattr(self, name)
            if value is not None and value not in words:
                raise BadNodeSetting(name, value, f"{', '.join(words)}, or None")
        for name, term in self.extra.items():
            if not re.fullmatch(r"[a-z][A-Za-z0-9_@]*", name) or not term.strip():
                raise BadNodeSetting("extra", {name: term}, "parameters of RabbitMQ, each with an Erlang term")

    @property
    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "extra": dict(self.extra)}

    @property
    def erlang_flags(self) -> str:
        """The flags of the Erlang machine for these settings; empty if all are left to RabbitMQ.

        Source: the page of `erl` in Erlang's documentation, and erts_alloc.
        """
        flags = []
        if self.schedulers is not None:
            flags.append(f"+S {self.schedulers}:{self.schedulers}")
        if self.busy_wait is not None:
            flags.append(" ".join(f"+{threads} {self.busy_wait}" for threads in ("sbwt", "sbwtdcpu", "sbwtdio")))
        if self.allocator is not None:
            flags.append(f"+MBas {self.allocator} +MHas {self.allocator}")
        return " ".join(flags)

    def config_text(self, host: str, port: int, user: str, password: str) -> str:
        """The content of a rabbitmq.config that listens on one address with one user."""
        listener = f'[{{"{host}", {port}}}]'
        if self.keys is None:
            listeners = {"tcp_listeners": listener}
        else:
            listeners = {
                "tcp_listeners": "[]",
                "ssl_listeners": listener,
                "ssl_options": _tls_options(Path(self.keys)),
            }
        parameters = {
            **listeners,
            "tcp_listen_options": f"[{', '.join(self._socket_options())}]",
            "vm_memory_high_watermark": memory_term(self.memory_mark),
            "disk_free_limit": str(self.disk_limit_bytes),
            "default_user": f'<<"{user}">>',
            "default_pass": f'<<"{password}">>',
            **self.extra,
        }
        return "[{rabbit, [\n" + ",\n".join(f"  {{{name}, {term}}}" for name, term in parameters.items()) + "\n]}].\n"

    def _socket_options(self) -> list[str]:
        """RabbitMQ's own defaults and our settings: a list in rabbitmq.config replaces RabbitMQ's whole list."""
        options = ["{backlog, 128}", "{linger, {true, 0}}", "{exit_on_close, false}"]
        options.append(f"{{nodelay, {str(self.nodelay).lower()}}}")
        buffers = {"sndbuf": self.send_buffer_bytes, "recbuf": self.receive_buffer_bytes}
        return options + [f"{{{name}, {size}}}" for name, size in buffers.items() if size is not None]


def memory_term(mark: float) -> str:
    """A memory mark as an Erlang term: a share, or {absolute, bytes}."""
    if mark <= 1:
        return f"{mark:.6f}"
    return f"{{absolute, {int(mark)}}}"


def _tls_options(keys: Path) -> str:
    """TLS 1.3 alone, with clients that show the connector's certificate."""
    files = {"cacertfile": "ca.pem", "certfile": "listener.pem", "keyfile": "listener.key"}
    options = [f"{{{name}, {_string(str((keys / file).absolute()))}}}" for name, file in files.items()]
    return f"[{', '.join(options)}, {{verify, verify_peer}}, {{fail_if_no_peer_cert, true}}, {{versions, ['tlsv1.3']}}]"


def _string(text: str) -> str:
    """An Erlang string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
