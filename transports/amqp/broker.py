"""RabbitMQ as the broker of a run: a private node, the user's standing node, or one at a given address."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from transports.amqp.address import PASSWORD, BrokerAddress
from transports.amqp.probe import Probe
from transports.amqp.topology import NAMES, Side
from transports.base import Address
from transports.declaration import Broker, RunningBroker, Where
from transports.rabbitmq import NodeAddress, NodeSettings, private_node, running_node


class RabbitMq(Broker):
    starts = frozenset({"amqp"})
    place = "user@host:port/vhost"

    def check(self, url: str) -> None:
        BrokerAddress.of(Address.parse(url, token=""))

    @contextlib.contextmanager
    def start(self, folder: Path, process_group: int | None, nodelay: bool, where: Where) -> Iterator[RunningBroker]:
        with private_node(folder, process_group, NodeSettings(nodelay=nodelay), where) as node:
            yield _running(node)

    def standing(self, nodelay: bool) -> RunningBroker | None:
        """The node of `exchange broker start`, if its sockets have this TCP_NODELAY."""
        node = running_node()
        return _running(node) if node is not None and node.facts()["settings"]["nodelay"] == nodelay else None

    def probe(self, url: str, meetings: Sequence[Address]) -> Probe:
        run = meetings[0].token
        queues = {queue.name.removeprefix(f"{run}.") for each in meetings for queue in Side.of(each, True).declares}
        return Probe(url, run, sorted(queues - set(NAMES)))


def _running(node: NodeAddress) -> RunningBroker:
    url = f"amqp://{quote(node.user)}@{node.host}:{node.port}/{quote(node.vhost, safe='')}"
    return RunningBroker(url, {PASSWORD: node.password}, node)
