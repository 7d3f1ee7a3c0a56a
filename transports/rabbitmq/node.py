"""A private RabbitMQ node: one process, one folder, one loopback port, one user with a random password."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from transports.declaration import ServerPlace
from transports.keys import CONNECTOR, Keys
from transports.rabbitmq.boot import NodeFolder, check_open_files, find_server
from transports.rabbitmq.process import NodeAddress
from transports.rabbitmq.settings import NodeSettings, RabbitMqError, memory_term
from transports.servers.ending import end_in_words, end_process
from transports.servers.starting import ServerDidNotStart, wait_until_ready
from transports.sockets import reserved_port

LOOPBACK = ServerPlace()
USER = "exchange"
VHOST = "/"
READY_S = 180.0
"""The longest time that a node may take to speak AMQP."""
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
CONNECTION_START = struct.pack(">HH", 10, 10)
"""Class and method number of Connection.Start, with which its frame begins."""
FRAME_HEADER = struct.Struct(">BHI")
"""Type, channel, and bytes of a frame."""
METHOD_FRAME = 1
"""The type of a frame that holds a method."""


class NodePortTaken(RabbitMqError):
    """Another process has the port that was asked for."""

    def __init__(self, port: int, why: str) -> None:
        super().__init__(f"port {port} cannot be had for RabbitMQ ({why}): name another, or none for a free one")


class NodeDidNotStart(RabbitMqError, ServerDidNotStart):
    """The node ended, or did not speak AMQP in time."""

    def __init__(self, failure: str, last_lines: str) -> None:
        ServerDidNotStart.__init__(self, "RabbitMQ", failure, last_lines)


@dataclass(frozen=True)
class Node(NodeAddress):
    """A node that we started, and stop."""

    folder: Path
    process: subprocess.Popen[bytes] = field(repr=False)
    where: ServerPlace = field(repr=False)

    @classmethod
    def start(
        cls,
        folder: Path,
        settings: NodeSettings | None = None,
        *,
        process_group: int | None = None,
        outlives_us: bool = False,
        port: int = 0,
        patience_s: float = READY_S,
        where: ServerPlace = LOOPBACK,
    ) -> Node:
        """Start a node and wait until it speaks AMQP. The folder must not exist; `stop` removes it.

        process_group    the group of our session that the node joins; None makes the node lead a new session
        outlives_us      the node goes on when we end; otherwise it ends with us, also if we are killed
        port             0 takes a free port
        where            on loopback, on another address of this host, or in another network namespace
        RabbitMqMissing, NodePortTaken, NodeDidNotStart: after these errors no process and no file of the node is left.
        """
        settings = settings or NodeSettings()
        server = find_server()
        check_open_files()
        with _reserved(port, where) as node_port:
            new_folder = NodeFolder.make(folder, settings, where.host, node_port, USER, outlives_us)
            return cls._start_in(
                new_folder, server, node_port, settings.facts, process_group, outlives_us, patience_s, where
            )

    @classmethod
    def _start_in(
        cls,
        folder: NodeFolder,
        server: Path,
        port: int,
        settings: dict[str, Any],
        process_group: int | None,
        outlives_us: bool,
        patience_s: float,
        where: ServerPlace,
    ) -> Node:
        """Start a node over a folder that exists, and wait until it speaks AMQP."""
        began_s = time.monotonic()
        process = _launch([*where.prefix, str(server)], folder, process_group, outlives_us)
        try:
            greeting = _wait_until_ready(process, folder, port, began_s + patience_s, where)
        except BaseException:
            _stop(process, folder.path)
            raise
        about = _facts(greeting, process.pid, port, time.monotonic() - began_s, settings)
        return cls(
            host=where.host,
            port=port,
            user=USER,
            password=folder.password,
            vhost=VHOST,
            pid=process.pid,
            about=about,
            folder=folder.path,
            process=process,
            where=where,
        )

    def restart(self, patience_s: float = READY_S) -> Node:
        """End the node and start it over its own folder: same address, same user, same durable queues.

        The new node leads a session of its own. Stop the new one only: both have the same folder.
        NodePortTaken leaves the folder to `stop`; after other errors nothing is left, as with `start`.
        """
        outlives_us = self.process.stdin is None
        server = find_server()
        settings = self.facts()["settings"]
        _end(self.process)
        with _reserved(self.port, self.where) as port:
            old_folder = NodeFolder.left_at(self.folder)
            return self._start_in(old_folder, server, port, settings, None, outlives_us, patience_s, self.where)

    def set_memory_mark(self, mark: float) -> None:
        """Limit the node's memory, as rabbitmqctl does: publishers pause soon if the node has more."""
        self.evaluate(f"vm_memory_monitor:set_vm_memory_high_watermark({memory_term(mark)})")

    def evaluate(self, expression: str) -> None:
        """Let the node evaluate an Erlang expression, as `rabbitmqctl eval` does. OSError if the node is gone."""
        if self.process.stdin is None:
            raise OSError("the node outlives its starter, so it has no pipe for expressions")
        self.process.stdin.write(f"{expression}.\n".encode())
        self.process.stdin.flush()

    def stop(self) -> None:
        """End the node and its children, and remove its folder. May be called again."""
        _stop(self.process, self.folder)


@contextlib.contextmanager
def private_node(
    folder: Path, process_group: int | None = None, settings: NodeSettings | None = None, where: ServerPlace = LOOPBACK
) -> Iterator[Node]:
    """A node that ends with the context, or with us."""
    node = Node.start(folder, settings, process_group=process_group, where=where)
    try:
        yield node
    finally:
        node.stop()


@contextlib.contextmanager
def _reserved(port: int, where: ServerPlace) -> Iterator[int]:
    """Reserve the port while the context lasts. NodePortTaken if it cannot be had."""
    with contextlib.ExitStack() as closing:
        try:
            reserved = closing.enter_context(reserved_port(where.host, port, where.open_socket))
        except (OSError, OverflowError) as error:
            raise NodePortTaken(port, getattr(error, "strerror", None) or str(error)) from error
        yield reserved


def _launch(
    command: list[str], folder: NodeFolder, process_group: int | None, outlives_us: bool
) -> subprocess.Popen[bytes]:
    try:
        with folder.open_output() as output:
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
    except OSError as error:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise NodeDidNotStart(f"cannot be started: {error.strerror}", "") from error


def _wait_until_ready(
    process: subprocess.Popen[bytes], folder: NodeFolder, port: int, until_s: float, where: ServerPlace
) -> Greeting:
    tls = None if where.keys is None else Keys.checked(where.keys).tls(CONNECTOR)

    def failure() -> str:
        code = process.poll()
        return "" if code is None else f"{end_in_words(code)} while it started"

    return wait_until_ready(
        look=lambda: greeting_of(where.host, port, 1.0, where.open_socket, tls),
        failure=failure,
        until_s=until_s,
        refuse=lambda problem: NodeDidNotStart(problem, folder.last_lines()),
        too_late="did not speak AMQP in time",
    )


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    _end(process)
    shutil.rmtree(folder, ignore_errors=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        if process.poll() is None:
            end_process(psutil.Process(process.pid))
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


@dataclass(frozen=True)
class Greeting:
    """A broker's description of itself in Connection.Start."""

    product: str
    version: str
    platform: str


def greeting_of(
    host: str,
    port: int,
    patience_s: float,
    open_socket: Callable[[], socket.socket] = socket.socket,
    tls: ssl.SSLContext | None = None,
) -> Greeting | None:
    """Connect, and read the first frame of AMQP 0-9-1 without a client library. None if no such frame comes in time."""
    try:
        with contextlib.ExitStack() as closing:
            sock = closing.enter_context(open_socket())
            sock.settimeout(patience_s)
            sock.connect((host, port))
            if tls is not None:
                sock = closing.enter_context(tls.wrap_socket(sock))
            sock.sendall(PROTOCOL_HEADER)
            kind, _, size = FRAME_HEADER.unpack(_read_exactly(sock, FRAME_HEADER.size))
            if kind != METHOD_FRAME or size > 1 << 16:
                return None
            method = _read_exactly(sock, size)
    except OSError:
        return None
    if not method.startswith(CONNECTION_START):
        return None
    return Greeting(
        product=_text_property(method, b"product"),
        version=_text_property(method, b"version"),
        platform=_text_property(method, b"platform"),
    )


def _read_exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


def _text_property(method: bytes, name: bytes) -> str:
    """A server property that is a long string: short name, `S`, length, text. Empty if there is none."""
    _, property_name, rest = method.partition(bytes([len(name)]) + name + b"S")
    if not property_name or len(rest) < 4:
        return ""
    return rest[4 : 4 + int.from_bytes(rest[:4], "big")].decode(errors="replace")
