"""AMQP 0-9-1 through a broker: RabbitMQ in the middle of everything. Loaded when first used.

`?client=` takes compiled (the default), joined or pika; `?delivery=` lossy (the default), acked, confirmed or durable;
`?pair=` a name for one of several pairs that share a direct exchange.
"""

from transports.base import Address, Link, Transport
from transports.pattern import Pattern


def listen(address: Address) -> Link:
    from transports.amqp import link

    return link.listen(address)


def connect(address: Address, until_ns: int) -> Link:
    from transports.amqp import link

    return link.connect(address, until_ns)


TRANSPORT = Transport(
    places={"amqp": "broker", "amqps": "broker"},
    listen=listen,
    connect=connect,
    options=frozenset({"client", "delivery", "pair"}),
    over_tcp=frozenset({"amqp", "amqps"}),
    simplex=frozenset({"amqp", "amqps"}),
    patterns=frozenset(Pattern),
    variants=("", "client=joined", "client=pika", "delivery=acked", "delivery=confirmed", "delivery=durable"),
)
