"""What went wrong with a broker, in words for the user."""

from __future__ import annotations

import ssl
from typing import NoReturn

from pika import exceptions

from transports.amqp.address import CA_FILE, PASSWORD, BrokerAddress
from transports.base import BadAddress, CannotListen, PeerGone, TransportError

ACCESS_REFUSED, RESOURCE_LOCKED = 403, 405
OF_ANOTHER_HOST = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH, which Python does not name."""


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
            also = "" if address.tls else "; if this is its port for TLS, say amqps://"
            raise BadAddress(f"{where} does not speak AMQP 0-9-1{also}") from problem
        case exceptions.StreamLostError() | exceptions.AMQPHeartbeatTimeout():
            raise PeerGone(f"{where} went away") from problem
        case ssl.SSLError() as error:
            raise BadAddress(f"{where} {_without_tls(error, address)}") from problem
        case OSError() as error:
            raise PeerGone(f"{where} cannot be reached: {error.strerror or error}") from problem
        case other:
            raise PeerGone(f"{where}: {other or type(other).__name__}") from problem


def _without_tls(error: ssl.SSLError, address: BrokerAddress) -> str:
    """Why there is no TLS, and what to do."""
    match error:
        case ssl.SSLCertVerificationError(verify_code=code) if code in OF_ANOTHER_HOST:
            return f"has a certificate, but the certificate is not for {address.host!r}: use a name that is in it"
        case ssl.SSLCertVerificationError(verify_message=why):
            return f"has a certificate, but the certificate is not trusted ({why}): {CA_FILE} is to name the CA's file"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
            return "does not speak TLS on this port: name the port that does, or say amqp://"
    return f"cannot be spoken to over TLS: {error.reason or error}"


def _innermost(problem: BaseException) -> BaseException:
    """What lies under the layers in which pika's connection workflow wraps it."""
    while True:
        inner = getattr(problem, "exception", None) or (getattr(problem, "exceptions", None) or [None])[-1]
        if inner is None and len(problem.args) == 1 and isinstance(problem.args[0], BaseException):
            inner = problem.args[0]
        if not isinstance(inner, BaseException):
            return problem
        problem = inner
