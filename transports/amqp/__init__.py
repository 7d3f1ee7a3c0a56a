"""AMQP 0-9-1 through a broker. The modules with pika and numba load when the first link is made.

docs/transports.md has the options for users. Two further options are for this program: `?pair=` names one of several
pairs that share a direct exchange; by `?subscriber=` a durable subscriber of fanout or topic finds its queue again.
"""

import time

from transports.amqp.address import CLIENTS, DELIVERIES, QUEUES
from transports.amqp.switches import ALLOCATORS, BUSY_WAITS, MOST_SCHEDULERS
from transports.base import Address, Link, Pattern
from transports.declaration import BUFFERS, Transport, WholeNumberOption, later
from transports.guarantees import IN_MEMORY, Fate, Guarantee, Sync

OPEN_S = 60.0
"""The seconds that a broker may take to set up a link."""
QUEUE_S = 0.02
"""The further seconds that a broker may take for each queue."""


def listen(address: Address) -> Link:
    return _open(address, listens=True)


def connect(address: Address, _until_ns: int) -> Link:
    """Open a connector's link. The broker must be there; the listener may come later: its queue keeps messages."""
    return _open(address, listens=False)


def _open(address: Address, listens: bool) -> Link:
    from transports.amqp.link import AmqpLink, TwoConnections, warm
    from transports.amqp.scanning import ScanningLink

    warm(address, listens)
    until_ns = time.monotonic_ns() + int((OPEN_S + len(address.keys) * QUEUE_S) * 1e9)
    if address.pattern is Pattern.SCAN and not listens:
        return ScanningLink(address, until_ns)
    if address.simplex:
        return TwoConnections(address, listens, until_ns)
    return AmqpLink(address, listens, until_ns)


ACKNOWLEDGED = Guarantee(Fate.KEPT, Fate.LOST)
ON_DISK = Guarantee(Fate.KEPT, Fate.KEPT, Sync.BEFORE_CONFIRM)
GUARANTEES = {
    "": IN_MEMORY,
    "delivery=acked": ACKNOWLEDGED,
    "delivery=confirmed": ACKNOWLEDGED,
    "delivery=durable": ON_DISK,
    "queue=quorum": Guarantee(Fate.LOST, Fate.KEPT, Sync.BEFORE_CONFIRM),
    "queue=quorum&delivery=acked": ON_DISK,
    "queue=quorum&delivery=confirmed": ON_DISK,
    "queue=quorum&delivery=durable": ON_DISK,
    "queue=stream": Guarantee(Fate.KEPT, Fate.KEPT, Sync.BY_SYSTEM),
}

TRANSPORT = Transport(
    places={"amqp": "broker", "amqps": "broker"},
    listen=listen,
    title="AMQP",
    colour="orange",
    connect=connect,
    guarantees=GUARANTEES,
    about=dict.fromkeys(("amqp", "amqps"), "a RabbitMQ between the two, over TCP or TLS"),
    options={
        "client": CLIENTS,
        "delivery": tuple(DELIVERIES),
        "queue": QUEUES,
        "prefetch": WholeNumberOption("messages", 1, 65_535),
        "ack_batch": WholeNumberOption("messages", 1, 65_535),
        "confirm_window": WholeNumberOption("messages", 1, 65_535),
        "heartbeat": WholeNumberOption("seconds", 0, 65_535),
        "schedulers": WholeNumberOption("threads", 1, MOST_SCHEDULERS),
        "busy_wait": BUSY_WAITS,
        "allocator": ALLOCATORS,
        "pair": (),
        "subscriber": (),
        "keys": (),
        **BUFFERS,
    },
    server_options=frozenset({"schedulers", "busy_wait", "allocator"}),
    run_settings={"amqp_client": "client", "delivery": "delivery"},
    over_tcp=frozenset({"amqp", "amqps"}),
    simplex=frozenset({"amqp", "amqps"}),
    patterns=frozenset(Pattern),
    slow_subscriber={"": {"wait": ""}},
    variants=(
        "",
        "client=pika",
        "delivery=acked",
        "delivery=confirmed",
        "delivery=durable",
        "delivery=confirmed&queue=quorum",
        "delivery=acked&queue=stream",
    ),
    needs={"pika": "`pip install pika`"},
    broker=later("transports.amqp.broker:RabbitMq"),
)
