"""What pika asks of an event loop (pika.adapters.utils.nbio_interface), on a loop that is not its own.

The socket is ours: it is connected here, blocking and with a time limit, TLS included; then it belongs to a Stream.
Timers run when the component's loop comes by. pika calls this interface internal: its version is pinned.
"""

from __future__ import annotations

import heapq
import itertools
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from pika.adapters.utils.nbio_interface import AbstractIOReference, AbstractIOServices, AbstractTimerReference

from transports.amqp.stream import Stream

NEVER_NS = 2**62


class _Timer(AbstractTimerReference, AbstractIOReference):
    """Something to be done once, unless cancelled."""

    def __init__(self, callback: Callable[..., None]) -> None:
        self.callback: Callable[..., None] | None = callback

    def cancel(self) -> bool:
        was_due, self.callback = self.callback is not None, None
        return was_due


class IoServices(AbstractIOServices):
    """Timers, and one stream."""

    def __init__(self, until_ns: int) -> None:
        self._until_ns = until_ns
        self._timers: list[tuple[int, int, _Timer]] = []
        self._numbers = itertools.count()
        self.stream: Stream | None = None

    def call_later(self, delay: float, callback: Callable[..., None]) -> _Timer:
        timer = _Timer(callback)
        due_ns = time.monotonic_ns() + int(delay * 1e9)
        heapq.heappush(self._timers, (due_ns, next(self._numbers), timer))
        return timer

    def add_callback_threadsafe(self, callback: Callable[..., None]) -> None:
        """There is one thread."""
        self.call_later(0, callback)

    @property
    def next_due_ns(self) -> int:
        return self._timers[0][0] if self._timers else NEVER_NS

    def run_due(self) -> None:
        """Do what is due."""
        while self._timers and self._timers[0][0] <= time.monotonic_ns():
            _, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()

    def _answer(self, on_done: Callable[..., None], answer: object) -> _Timer:
        return self.call_later(0, lambda: on_done(answer))

    def getaddrinfo(
        self, host: str, port: int, on_done: Callable[..., None],
        family: int = 0, socktype: int = 0, proto: int = 0, flags: int = 0,
    ) -> _Timer:  # fmt: skip
        try:
            found: object = socket.getaddrinfo(host, port, family, socktype, proto, flags)
        except OSError as error:
            found = error
        return self._answer(on_done, found)

    def connect_socket(self, sock: socket.socket, resolved_addr: Any, on_done: Callable[..., None]) -> _Timer:
        error: OSError | None = None
        try:
            sock.settimeout(self._left_s())
            sock.connect(resolved_addr)
        except OSError as refused:
            error = refused
        return self._answer(on_done, error)

    def create_streaming_connection(
        self, protocol_factory: Callable[[], Any], sock: socket.socket, on_done: Callable[..., None],
        ssl_context: ssl.SSLContext | None = None, server_hostname: str | None = None,
    ) -> _Timer:  # fmt: skip
        answer: object
        try:
            sock.settimeout(self._left_s())
            if ssl_context is not None:
                sock = ssl_context.wrap_socket(sock, server_hostname=server_hostname)
            sock.setblocking(False)
            protocol = protocol_factory()
            self.stream = Stream(sock, protocol)
            protocol.connection_made(self.stream)
            answer = self.stream, protocol
        except OSError as error:
            sock.close()
            answer = error
        return self._answer(on_done, answer)

    def _left_s(self) -> float:
        return max((self._until_ns - time.monotonic_ns()) / 1e9, 0.1)

    def get_native_ioloop(self) -> IoServices:
        return self

    def run(self) -> None:
        raise NotImplementedError("the component's own loop runs")

    def stop(self) -> None:
        raise NotImplementedError("the component's own loop runs")

    def close(self) -> None:
        self._timers.clear()
