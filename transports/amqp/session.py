"""A connection with one channel: pika does the talking, here it is waited for."""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Callable
from typing import Any

import pika
from pika import exceptions
from pika.channel import Channel
from pika.connection import Connection

from transports.amqp.address import CA_FILE, BrokerAddress, password
from transports.amqp.loops import Loop
from transports.amqp.mistakes import explain
from transports.base import BadAddress, PeerGone

logging.getLogger("pika").setLevel(logging.CRITICAL)  # what goes wrong is said once, by us
HEARTBEAT_S = 30


def parameters(address: BrokerAddress) -> pika.ConnectionParameters:
    """What pika needs to know of a broker."""
    tls = None
    if address.tls:
        ca_file = os.environ.get(CA_FILE)
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except OSError as error:
            raise BadAddress(f"{CA_FILE}: cannot use {ca_file}: {error}") from error
        tls = pika.SSLOptions(context, address.host)
    return pika.ConnectionParameters(
        host=address.host,
        port=address.port,
        virtual_host=address.vhost,
        credentials=pika.PlainCredentials(address.user, password()),
        heartbeat=HEARTBEAT_S,
        ssl_options=tls,
        client_properties={"connection_name": "exchange"},
    )


class Session:
    """`open` connects; `ask` waits for an answer of the broker; `check` raises once the connection has ended."""

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._where = f"{address.host}:{address.port}"
        self._problem: BaseException | None = None
        self._closing = False
        self.blocked_since_ns = self.blocked_ns = 0
        self.loop: Loop
        self.channel: Channel

    def open(self, loop: Loop, until_ns: int) -> None:
        self.loop = loop
        self._opened: list[Connection] = []
        self.wait_for(lambda: bool(self._opened), until_ns)
        loop.connection.add_on_connection_blocked_callback(lambda *_: self._block(time.monotonic_ns()))
        loop.connection.add_on_connection_unblocked_callback(lambda *_: self._block(0))
        self._open_channel(until_ns)

    def _open_channel(self, until_ns: int) -> None:
        (self.channel,) = self.ask(lambda done: self.loop.connection.channel(on_open_callback=done), until_ns)
        self.channel.add_on_close_callback(self._channel_closed)

    def renew_channel(self, until_ns: int) -> None:
        """After the broker has closed it: what it objected to is past."""
        if self.loop.connection.is_open:
            self._problem = None
            self._open_channel(until_ns)

    def opened(self, connection: Connection) -> None:
        self._opened.append(connection)

    def failed(self, _connection: Connection, error: BaseException) -> None:
        self._problem = error

    def closed(self, _connection: Connection, reason: BaseException) -> None:
        self._problem = self._problem or reason

    def _channel_closed(self, _channel: Channel, reason: BaseException) -> None:
        if not self._closing:
            self._problem = self._problem or reason

    def _block(self, since_ns: int) -> None:
        """Note how long the broker took no publishes (memory or disk alarm)."""
        self.blocked_ns += time.monotonic_ns() - self.blocked_since_ns if self.blocked_since_ns else 0
        self.blocked_since_ns = since_ns

    @property
    def blocked_s(self) -> float:
        """How long the broker has taken no publishes."""
        now_ns = time.monotonic_ns() - self.blocked_since_ns if self.blocked_since_ns else 0
        return (self.blocked_ns + now_ns) / 1e9

    def ask(self, request: Callable[[Callable[..., None]], object], until_ns: int) -> tuple[Any, ...]:
        """Make a request that takes a callback; what it was called with."""
        self.check()
        answers: list[tuple[Any, ...]] = []
        request(lambda *answer: answers.append(answer))
        self.wait_for(lambda: bool(answers), until_ns)
        return answers[0]

    def wait_for(self, condition: Callable[[], bool], until_ns: int) -> None:
        """Serve the connection until the condition holds. PeerGone where it does not in time."""
        while not condition():
            self.check()
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"the broker at {self._where} did not answer in time: is it an AMQP 0-9-1 broker?")
            self.loop.sleep(until_ns)
            self.loop.serve()

    def check(self) -> None:
        """TransportError, in words for the user, once connection or channel has ended."""
        if self._problem is not None:
            explain(self._problem, self._address)

    def close(self, until_ns: int) -> bool:
        """Close in order; whether the broker has answered our Close."""
        if self._problem is not None or not self.loop.connection.is_open:
            return False
        self._closing = True
        self.loop.connection.close()
        try:
            self.wait_for(lambda: self._problem is not None, until_ns)
        except PeerGone:
            return False
        return isinstance(self._problem, exceptions.ConnectionClosedByClient)
