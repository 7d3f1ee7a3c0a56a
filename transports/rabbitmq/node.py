"""A private RabbitMQ node: one process, one folder, one loopback port, one user with a random password."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from transports.rabbitmq.address import NodeAddress
from transports.rabbitmq.ending import end
from transports.rabbitmq.errors import NodeDidNotStart, NodePortTaken
from transports.rabbitmq.finding import find_server
from transports.rabbitmq.folder import NodeFolder
from transports.rabbitmq.greeting import Greeting, greeting_of
from transports.rabbitmq.settings import NodeSettings
from transports.rabbitmq.where import Where

LOOPBACK = Where()
USER = "exchange"
VHOST = "/"
READY_S = 60.0
LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Node(NodeAddress):
    """A node that is ours to stop."""

    folder: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @classmethod
    def start(
        cls, folder: Path, settings: NodeSettings | None = None, *, process_group: int | None = None,
        outlives_us: bool = False, port: int = 0, patience_s: float = READY_S, where: Where = LOOPBACK,
    ) -> Node:  # fmt: skip
        """Start it and wait until it speaks AMQP; the folder must not exist, and is removed by `stop`.

        process_group    it joins this one, of our session; None makes it lead a session of its own
        outlives_us      it goes on when we end; otherwise it ends with us, however we end
        port             0 takes a free one
        where            on loopback, or in another network namespace
        RabbitMqMissing, NodePortTaken, NodeDidNotStart: then nothing is left.
        """
        settings, server = settings or NodeSettings(), find_server()
        with _reserved(port, where) as reserved:
            kept = NodeFolder.make(folder, settings, where.host, reserved, USER, outlives_us)
            return cls._up(kept, server, reserved, settings.facts, process_group, outlives_us, patience_s, where)

    @classmethod
    def _up(
        cls, folder: NodeFolder, server: Path, port: int, settings: dict[str, Any],
        process_group: int | None, outlives_us: bool, patience_s: float, where: Where = LOOPBACK,
    ) -> Node:  # fmt: skip
        began_s = time.monotonic()
        process = _launch([*where.prefix, str(server)], folder, process_group, outlives_us)
        try:
            greeting = _wait_until_ready(process, folder, port, began_s + patience_s, where)
        except BaseException:
            _stop(process, folder.path)
            raise
        about = _facts(greeting, process.pid, port, time.monotonic() - began_s, settings)
        return cls(where.host, port, USER, folder.password, VHOST, process.pid, about, folder.path, process)

    def restart(self, patience_s: float = READY_S) -> Node:
        """End it, if it has not ended, and start it over its own folder: same address, same user, what was durable.

        It leads a session of its own. What is to be stopped is the new one: they have one folder.
        NodePortTaken leaves the folder to `stop`; after other errors nothing is left, as with `start`.
        """
        outlives_us, server = self.process.stdin is None, find_server()
        _end(self.process)
        with _reserved(self.port, LOOPBACK) as port:
            kept = NodeFolder.left_at(self.folder)
            return self._up(kept, server, port, self.facts()["settings"], None, outlives_us, patience_s)

    def stop(self) -> None:
        """End it and what it started, and remove its folder. May be called again."""
        _stop(self.process, self.folder)


@contextlib.contextmanager
def private_node(
    folder: Path, process_group: int | None = None, settings: NodeSettings | None = None, where: Where = LOOPBACK
) -> Iterator[Node]:
    """A node for as long as the context is open, or we live."""
    node = Node.start(folder, settings, process_group=process_group, where=where)
    try:
        yield node
    finally:
        node.stop()


@contextlib.contextmanager
def _reserved(port: int, where: Where) -> Iterator[int]:
    """Nobody else is given the port: a socket is bound to it and does not listen. The node sets SO_REUSEADDR too."""
    with where.open_socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((where.host, port))
        except (OSError, OverflowError) as error:
            raise NodePortTaken(port, getattr(error, "strerror", None) or str(error)) from error
        yield holder.getsockname()[1]


def _launch(
    command: list[str], folder: NodeFolder, process_group: int | None, outlives_us: bool
) -> subprocess.Popen[bytes]:
    with folder.open_output() as output, _removed_on_failure(folder.path):
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if outlives_us else subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder.path,
            env=folder.environment,
            umask=0o077,
            process_group=process_group,
            start_new_session=process_group is None,
        )


@contextlib.contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise NodeDidNotStart(f"cannot be started: {error.strerror}", "") from error


def _wait_until_ready(
    process: subprocess.Popen[bytes], folder: NodeFolder, port: int, until_s: float, where: Where
) -> Greeting:
    while not (greeting := greeting_of(where.host, port, 1.0, where.open_socket)):
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(LOOK_EVERY_S)
            raise NodeDidNotStart(f"ended with exit code {code} instead of starting", folder.last_lines())
        if time.monotonic() > until_s:
            raise NodeDidNotStart("did not speak AMQP in time", folder.last_lines())
    return greeting


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    _end(process)
    shutil.rmtree(folder, ignore_errors=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        if process.poll() is None:
            end(psutil.Process(process.pid))
    process.wait()
    if process.stdin:
        process.stdin.close()


def _facts(greeting: Greeting, pid: int, port: int, took_s: float, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "product": greeting.product,
        "version": greeting.version,
        "erlang": greeting.platform.rpartition(" ")[2],
        "pid": pid,
        "port": port,
        "ready_after_s": round(took_s, 3),
        "settings": settings,
    }
