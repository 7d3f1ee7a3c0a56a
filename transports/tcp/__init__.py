"""Plain TCP sockets, one write a frame: the raw baseline that middleware is set beside. Loaded when first used."""

from transports.base import Address, Link, Transport


def listen(address: Address) -> Link:
    from transports.tcp import link

    return link.listen(address)


def connect(address: Address, until_ns: int) -> Link:
    from transports.tcp import link

    return link.connect(address, until_ns)


TRANSPORT = Transport(places={"tcp": "port"}, listen=listen, connect=connect, over_tcp=frozenset({"tcp"}))
