"""What went wrong with a broker, in words for the user."""

from __future__ import annotations

import ssl
from typing import NoReturn

from pika import exceptions

from transports.amqp.address import CA_FILE, PASSWORD, BrokerAddress
from transports.base import BadAddress, CannotListen, PeerGone, TransportError

ACCESS_REFUSED, RESOURCE_LOCKED = 403, 405


def explain(problem: BaseException, address: BrokerAddress) -> NoReturn:
    """pika's exception as a sentence: what failed, where, what to do."""
    where = f"the broker at {address.host}:{address.port}"
    match _innermost(problem):
        case exceptions.ProbableAuthenticationError():
            raise BadAddress(f"{where} refuses user {address.user!r}: set {PASSWORD}") from problem
        case exceptions.ConnectionClosedByBroker(reply_code=530) | exceptions.ProbableAccessDeniedError():
            raise BadAddress(f"{where} has no vhost {address.vhost!r} for {address.user!r}: name another") from problem
        case exceptions.ConnectionClosedByBroker() as closed:
            raise PeerGone(f"{where} closed the connection: {closed.reply_text}") from problem
        case exceptions.ChannelClosedByBroker(reply_code=code) as closed if code in (ACCESS_REFUSED, RESOURCE_LOCKED):
            raise CannotListen(
                f"{address.url} is taken; choose another run or wait: {where} says {closed.reply_text}"
            ) from problem
        case exceptions.ChannelClosedByBroker() as closed:
            raise TransportError(f"{where} refuses: {closed.reply_text}") from problem
        case exceptions.IncompatibleProtocolError():
            raise BadAddress(f"{where} does not speak AMQP 0-9-1") from problem
        case exceptions.StreamLostError() | exceptions.AMQPHeartbeatTimeout():
            raise PeerGone(f"{where} went away") from problem
        case ssl.SSLError() as error:
            raise BadAddress(f"{where}: TLS failed: {error.reason or error}; {CA_FILE} names your CA") from problem
        case OSError() as error:
            raise PeerGone(f"{where} cannot be reached: {error.strerror or error}") from problem
        case other:
            raise PeerGone(f"{where}: {other or type(other).__name__}") from problem


def _innermost(problem: BaseException) -> BaseException:
    """What lies under the layers in which pika's connection workflow wraps it."""
    while True:
        inner = getattr(problem, "exception", None) or (getattr(problem, "exceptions", None) or [None])[-1]
        if inner is None and len(problem.args) == 1 and isinstance(problem.args[0], BaseException):
            inner = problem.args[0]
        if not isinstance(inner, BaseException):
            return problem
        problem = inner
