"""A broker's address, our user there, and the delivery guarantee: `amqp://user@host:port/vhost?delivery=acked`."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from transports.base import BASIC_PATTERNS, PUBLISHING_PATTERNS, Address, BadAddress, Pattern
from transports.regular_files import read_regular

CLIENTS = ("compiled", "pika")
PORTS = {"amqp": 5672, "amqps": 5671}
PASSWORD = "EXCHANGE_AMQP_PASSWORD"
PASSWORD_FILE = "EXCHANGE_AMQP_PASSWORD_FILE"
MOST_PASSWORD_BYTES = 1 << 16
CA_FILE = "EXCHANGE_AMQP_CA_FILE"
CONFIRM_WINDOW = 4_096
PREFETCH = 8_192
ACK_BATCH = 200
HEARTBEAT_S = 30
QUEUES = CLASSIC, QUORUM, STREAM = ("classic", "quorum", "stream")
"""The broker's kinds of queue."""


class Delivery(NamedTuple):
    """A delivery guarantee: how a link publishes and consumes."""

    name: str
    acks: bool
    """The consumer acknowledges in batches; the broker gives a dead consumer's unacknowledged messages to the next."""
    confirms: bool
    """The broker confirms each publish, and returns a message that no queue takes."""
    durable: bool
    """Queues and messages outlive the broker."""
    prefetch: int = PREFETCH
    """The most deliveries without an acknowledgement; they are set aside while a publisher waits for confirms."""
    ack_batch: int = ACK_BATCH
    """Deliveries that one acknowledgement settles while they keep coming."""
    confirm_window: int = CONFIRM_WINDOW
    """The most publishes that wait for the broker's confirm."""
    queue: str = CLASSIC
    """The kind of the queues that have a name: classic, quorum or stream."""


DELIVERIES = {
    delivery.name: delivery
    for delivery in (
        Delivery("lossy", acks=False, confirms=False, durable=False),  # as in the paper
        Delivery("acked", acks=True, confirms=False, durable=False),
        Delivery("confirmed", acks=True, confirms=True, durable=False),
        Delivery("durable", acks=True, confirms=True, durable=True),
    )
}


@dataclass(frozen=True)
class BrokerAddress:
    """A broker's address in parts, without the password."""

    url: str
    host: str
    port: int
    user: str
    vhost: str
    client: str
    delivery: Delivery
    heartbeat_s: int
    tls: bool
    keys: Path | None
    """The folder of the keys by which the broker and its clients know each other."""

    @classmethod
    def of(cls, address: Address) -> BrokerAddress:
        """The parts of an address that `Transport.check` has accepted. BadAddress if a part is missing or wrong.

        BadAddress, too, if the URL has a password.
        """
        parts = urlsplit(address.url)
        if parts.password is not None:
            raise BadAddress(f"{address.masked_url}: a URL takes no password: set {PASSWORD}, or {PASSWORD_FILE}")
        try:
            port = parts.port
        except ValueError:
            port = 0
        if port == 0:
            raise BadAddress(f"{address.masked_url}: the port is to be 1..65535")
        if not parts.hostname:
            raise BadAddress(f"{address.masked_url!r} lacks a host: it takes the form amqp://user@host:port/vhost")
        return cls(
            url=address.url,
            host=parts.hostname,
            port=port or PORTS[address.scheme],
            user=unquote(parts.username or "guest"),
            vhost=unquote(parts.path[1:]) or "/",
            client=address.options.get("client", CLIENTS[0]),
            delivery=_delivery(address),
            heartbeat_s=int(address.options.get("heartbeat", HEARTBEAT_S)),
            tls=address.scheme == "amqps",
            keys=_keys(address),
        )


def _delivery(address: Address) -> Delivery:
    """The delivery guarantee with the numbers that the address gives. BadAddress for an option without effect."""
    delivery = DELIVERIES[address.options.get("delivery", "lossy")]
    given = {name: int(address.options[name]) for name in NEEDS_OF_OPTIONS if name in address.options}
    kind = address.options.get("queue", CLASSIC)
    if address.pattern is Pattern.ROUTED:
        # Links of several guarantees share one address, so its options may be for another link: leave those out.
        given = {name: value for name, value in given.items() if getattr(delivery, NEEDS_OF_OPTIONS[name][0])}
    for name in given:
        field, needed = NEEDS_OF_OPTIONS[name]
        if not getattr(delivery, field):
            allowed = " or ".join(other.name for other in DELIVERIES.values() if getattr(other, field))
            raise BadAddress(
                f"{address.masked_url}: {name} is of {needed}, and delivery {delivery.name} has none: take {allowed}"
            )
    prefetch = given.get("prefetch", PREFETCH)
    delivery = delivery._replace(
        prefetch=prefetch,
        ack_batch=given.get("ack_batch", min(ACK_BATCH, (prefetch + 1) // 2)),
        confirm_window=given.get("confirm_window", CONFIRM_WINDOW),
    )
    if delivery.ack_batch > prefetch:
        raise BadAddress(
            f"{address.masked_url}: ack_batch is {delivery.ack_batch:,}, and only {prefetch:,} deliveries may be "
            "unacknowledged: raise prefetch"
        )
    if {"sndbuf", "rcvbuf"} & address.options.keys() and address.options.get("client") == "pika":
        raise BadAddress(f"{address.masked_url}: pika opens its sockets itself: buffers need client compiled")
    if kind == STREAM:
        _check_stream(address, delivery)
    return delivery._replace(queue=CLASSIC if address.pattern is Pattern.FAN_IN else kind)


NEEDS_OF_OPTIONS = {
    "prefetch": ("acks", "acknowledgements"),
    "ack_batch": ("acks", "acknowledgements"),
    "confirm_window": ("confirms", "confirms"),
}
"""Options with a number: each with the field of Delivery without which it has no effect, and that field in words."""


def _check_stream(address: Address, delivery: Delivery) -> None:
    if not delivery.acks:
        raise BadAddress(f"{address.masked_url}: a stream needs acknowledgements: take acked, confirmed or durable")
    if address.pattern not in BASIC_PATTERNS | PUBLISHING_PATTERNS:
        raise BadAddress(
            f"{address.masked_url}: a stream gives each consumer every message, so none can share it: "
            "take queue classic or quorum"
        )


def _keys(address: Address) -> Path | None:
    if "keys" not in address.options:
        return None
    if address.scheme != "amqps":
        raise BadAddress(f"{address.masked_url}: keys are for TLS: say amqps, and the broker's port for it")
    return Path(address.options["keys"])


def password() -> str:
    """The password from the environment, or from a file that only its owner can read; else RabbitMQ's default.

    BadAddress if the file cannot be read, or others can read it.
    """
    if PASSWORD in os.environ:
        return os.environ[PASSWORD]
    if PASSWORD_FILE not in os.environ:
        return "guest"
    path = Path(os.environ[PASSWORD_FILE])
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise BadAddress(f"{PASSWORD_FILE}: others may read {path}: type chmod 600 {path}")
        return read_regular(path, MOST_PASSWORD_BYTES, "a password").decode().rstrip("\n")
    except OSError as error:
        raise BadAddress(f"{PASSWORD_FILE}: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadAddress(f"{PASSWORD_FILE}: {path} is no UTF-8 text: {error}") from error
