"""A connection with one channel: pika speaks AMQP, and BrokerSession waits for the broker's answers."""

from __future__ import annotations

import contextlib
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

from transports.amqp.address import CA_FILE, PASSWORD, BrokerAddress, password
from transports.amqp.loops import Loop, OwnLoop
from transports.base import Address, BadAddress, CannotListen, PeerGone, TransportError

logging.getLogger("pika").setLevel(logging.CRITICAL)  # `explained` reports each problem, once
RESOURCE_LOCKED = 405
CERTIFICATE_OF_ANOTHER_HOST = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH, which Python does not name."""


def parameters(address: BrokerAddress) -> pika.ConnectionParameters:
    """A broker's address for pika, with the password. BadAddress if keys, or the CA's file, cannot be used."""
    tls = pika.SSLOptions(_tls(address), address.host) if address.tls else None
    return pika.ConnectionParameters(
        host=address.host,
        port=address.port,
        virtual_host=address.vhost,
        credentials=pika.PlainCredentials(address.user, password()),
        heartbeat=address.heartbeat_s,
        ssl_options=tls,
        client_properties={"connection_name": "exchange"},
    )


def _tls(address: BrokerAddress) -> ssl.SSLContext:
    """TLS by the address's keys, with a certificate of ours; without keys, by the CAs that are trusted here."""
    if address.keys is not None:
        from transports.keys import CONNECTOR, Keys

        return Keys.checked(address.keys).tls(CONNECTOR)
    ca_file = os.environ.get(CA_FILE)
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise BadAddress(f"{CA_FILE}: cannot use {ca_file}: {error}") from error


class BrokerSession:
    """A connection with one channel. The constructor connects the socket; `open` opens connection and channel.

    `ask` waits for an answer of the broker; `check` raises once the connection has ended.
    """

    def __init__(
        self, address: BrokerAddress, loop_of: Callable[..., Loop], until_ns: int, buffers: Address | None = None
    ) -> None:
        """Connect over a new loop. `buffers`: the address whose options set the buffers of the socket."""
        self._address = address
        self._where = f"{address.host}:{address.port}"
        self._problem: BaseException | None = None
        self._closing = False
        self._is_open = False
        self.blocked_since_ns = 0
        self.blocked_ns = 0
        self.channel: Channel
        try:
            self.loop = loop_of(parameters(address), self, until_ns, buffers)
        except OSError as error:
            raise explained(error, address) from error

    @classmethod
    def on_new_connection(cls, address: BrokerAddress, until_ns: int) -> BrokerSession:
        """Open a session that no link uses. PeerGone or BadAddress if it cannot be opened."""
        session = cls(address, OwnLoop, until_ns)
        try:
            session.open(until_ns)
        except TransportError:
            session.loop.release()
            raise
        return session

    def open(self, until_ns: int) -> None:
        self.wait_for(lambda: self._is_open, until_ns)
        connection = self.loop.connection
        connection.add_on_connection_blocked_callback(lambda *_: self._note_blocked())
        connection.add_on_connection_unblocked_callback(lambda *_: self._note_unblocked())
        self._open_channel(until_ns)

    def _open_channel(self, until_ns: int) -> None:
        (self.channel,) = self.ask(lambda done: self.loop.connection.channel(on_open_callback=done), until_ns)
        self.channel.add_on_close_callback(self._channel_closed)

    def renew_channel(self, until_ns: int) -> None:
        """Open a new channel after the broker has closed one, and forget why it did."""
        if self.loop.connection.is_open:
            self._problem = None
            self._open_channel(until_ns)

    # The methods of transports.amqp.connection.Callbacks: a Loop gives them to pika.

    def on_open(self, _connection: Connection) -> None:
        self._is_open = True

    def on_open_error(self, _connection: Connection, error: BaseException) -> None:
        self._problem = error

    def on_close(self, _connection: Connection, reason: BaseException) -> None:
        self._problem = self._problem or reason

    def _channel_closed(self, _channel: Channel, reason: BaseException) -> None:
        if not self._closing:
            self._problem = self._problem or reason

    def _note_blocked(self) -> None:
        """Note that the broker takes no publishes from now on, because of an alarm (memory or disk)."""
        if not self.blocked_since_ns:
            self.blocked_since_ns = time.monotonic_ns()

    def _note_unblocked(self) -> None:
        """Note that the broker takes publishes again."""
        if self.blocked_since_ns:
            self.blocked_ns += time.monotonic_ns() - self.blocked_since_ns
        self.blocked_since_ns = 0

    @property
    def blocked_s(self) -> float:
        """Seconds for which the broker has taken no publishes."""
        blocked_ns = self.blocked_ns
        if self.blocked_since_ns:
            blocked_ns += time.monotonic_ns() - self.blocked_since_ns
        return blocked_ns / 1e9

    def ask(self, request: Callable[[Callable[..., None]], object], until_ns: int) -> tuple[Any, ...]:
        """Make a request of pika's that takes a callback, wait, and return the arguments with which pika calls it.

        TransportError if the broker refuses the request, or does not answer in time.
        """
        self.check()
        answers: list[tuple[Any, ...]] = []
        try:
            request(lambda *answer: answers.append(answer))
        except exceptions.AMQPError as error:  # the channel was closed, and no other could be opened
            raise explained(error, self._address) from error
        self.wait_for(lambda: bool(answers), until_ns)
        return answers[0]

    def wait_for(self, condition: Callable[[], bool], until_ns: int) -> None:
        """Serve the connection until the condition holds. PeerGone if it does not hold in time."""
        self.loop.flush()
        while not condition():
            self.check()
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"the broker at {self._where} did not answer in time: is it an AMQP 0-9-1 broker?")
            self.loop.sleep(until_ns)
            self.loop.serve()
            self.loop.flush()

    def check(self) -> None:
        """Raise a TransportError for the user once connection or channel has ended."""
        if self._problem is not None:
            raise explained(self._problem, self._address) from self._problem

    def close(self, until_ns: int) -> None:
        """Send Close and wait for the broker's answer, if there is time and the connection is open; then release it."""
        if self._problem is None and self.loop.connection.is_open:
            self._closing = True
            self.loop.connection.close()
            with contextlib.suppress(PeerGone):
                self.wait_for(lambda: self._problem is not None, until_ns)
        self._problem = self._problem or exceptions.StreamLostError("closed")  # a second close waits for nothing
        self.loop.release()


def explained(problem: BaseException, address: BrokerAddress) -> TransportError:
    """Return pika's exception as an error for the user: what failed, where, what to do."""
    where = f"the broker at {address.host}:{address.port}"
    error: TransportError
    match _innermost(problem):
        case exceptions.ProbableAuthenticationError():
            error = BadAddress(f"{where} refuses user {address.user!r}: set {PASSWORD}")
        case exceptions.ConnectionClosedByBroker(reply_code=530) | exceptions.ProbableAccessDeniedError():
            error = BadAddress(f"{where} has no vhost {address.vhost!r} for {address.user!r}: name another")
        case exceptions.ConnectionClosedByBroker() as closed:
            error = PeerGone(f"{where} closed the connection: {closed.reply_text}")
        case exceptions.ChannelClosedByBroker() as closed if _is_exclusive(closed):
            error = CannotListen(
                f"{address.url} is taken; choose another run or wait: {where} says {closed.reply_text}"
            )
        case exceptions.ChannelClosedByBroker() as closed:
            error = TransportError(f"{where} refuses: {closed.reply_text}")
        case exceptions.IncompatibleProtocolError():
            also = "" if address.tls else "; if this is its port for TLS, say amqps://"
            error = BadAddress(f"{where} does not speak AMQP 0-9-1{also}")
        case exceptions.StreamLostError() | exceptions.AMQPHeartbeatTimeout():
            error = PeerGone(f"{where} went away")
        case ssl.SSLError() as tls_error:
            error = BadAddress(f"{where} {_tls_problem(tls_error, address)}")
        case OSError() as os_error:
            error = PeerGone(f"{where} cannot be reached: {os_error.strerror or os_error}")
        case other:
            error = PeerGone(f"{where}: {other or type(other).__name__}")
    return error


def _is_exclusive(closed: exceptions.ChannelClosedByBroker) -> bool:
    """True if another consumer has the queue. RESOURCE_LOCKED says so; ACCESS_REFUSED may also mean a permission."""
    return closed.reply_code == RESOURCE_LOCKED or "exclusive" in closed.reply_text


def _tls_problem(error: ssl.SSLError, address: BrokerAddress) -> str:
    """The end of a sentence about a failed TLS handshake: the reason, and what to do."""
    match error:
        case ssl.SSLError(reason=reason) if address.keys is not None and reason != "WRONG_VERSION_NUMBER":
            return f"and this end have no keys in common ({reason}): give both those of {address.keys}"
        case ssl.SSLCertVerificationError(verify_code=code) if code in CERTIFICATE_OF_ANOTHER_HOST:
            return f"has a certificate, but the certificate is not for {address.host!r}: use a name that is in it"
        case ssl.SSLCertVerificationError(verify_message=why):
            return f"has a certificate, but the certificate is not trusted ({why}): {CA_FILE} is to name the CA's file"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
            return "does not speak TLS on this port: name the port that does, or say amqp://"
    return f"cannot be spoken to over TLS: {error.reason or error}"


def _innermost(problem: BaseException) -> BaseException:
    """The exception under the layers in which pika's connection workflow wraps it."""
    inner = _wrapped(problem)
    while inner is not None:
        problem = inner
        inner = _wrapped(problem)
    return problem


def _wrapped(problem: BaseException) -> BaseException | None:
    """The exception that one of pika's wraps: its `exception`, the last of its `exceptions`, or its one argument."""
    inner = getattr(problem, "exception", None)
    several = getattr(problem, "exceptions", None)
    if inner is None and several:
        inner = several[-1]
    if inner is None and len(problem.args) == 1:
        inner = problem.args[0]
    return inner if isinstance(inner, BaseException) else None
