"""RabbitMQ as the broker of a run, and short connections of our own to a run's queues.

A run uses a private node, the user's standing node, or a broker at a given address. The connections count a run's
messages and delete its queues. They speak AMQP, so they need none of the broker's tools.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from transports.amqp.address import CA_FILE, PASSWORD, PASSWORD_FILE, BrokerAddress
from transports.amqp.session import BrokerSession
from transports.amqp.topology import EXCHANGES, NAMES, LinkSide, exchange_of, queue_length
from transports.base import Address, TransportError
from transports.declaration import Broker, BrokerServer, RunningBroker, ServerPlace
from transports.rabbitmq import Node, NodeAddress, NodeSettings, private_node, running_node, server_in_words
from transports.servers.usage import ProcessUsage

PATIENCE_NS = 5_000_000_000


class RabbitMq(Broker):
    starts = frozenset({"amqp"})
    place = "user@host:port/vhost"
    start_s = 3.0
    client_variables = (PASSWORD,)
    client_file_variables = (PASSWORD_FILE, CA_FILE)

    def check(self, address: Address) -> None:
        BrokerAddress.of(address)

    def installed(self) -> str:
        return server_in_words()

    @contextlib.contextmanager
    def start(
        self, folder: Path, process_group: int | None, nodelay: bool, where: ServerPlace
    ) -> Iterator[RunningBroker]:
        options = self.options
        settings = NodeSettings(
            nodelay=nodelay,
            keys=str(where.keys) if where.keys else None,
            schedulers=int(options["schedulers"]) if "schedulers" in options else None,
            busy_wait=options.get("busy_wait"),
            allocator=options.get("allocator"),
        )
        with private_node(folder, process_group, settings, where) as node:
            server = PrivateRabbitMq(node)
            try:
                yield _running(node, server)
            finally:
                server.node.stop()

    def standing(self, nodelay: bool) -> RunningBroker | None:
        """The node of `exchange broker start`, if its sockets have this TCP_NODELAY."""
        node = running_node()
        if node is None or node.facts()["settings"]["nodelay"] != nodelay:
            return None
        return _running(node)

    def probe(self, url: str, link_addresses: Sequence[Address]) -> RabbitMqProbe:
        run = link_addresses[0].token
        queues = set()
        exchanges = set()
        for address in link_addresses:
            side = LinkSide.of(address, listens=True)
            for queue in side.declares:
                if queue.name:  # the broker names a queue of one end alone
                    queues.add(queue.name.removeprefix(f"{run}."))
            for exchange in side.exchanges:
                exchanges.add(exchange.name.removeprefix(exchange_of(run).name))
        return RabbitMqProbe(url, run, sorted(queues - set(NAMES)), sorted(exchanges - set(EXCHANGES)))


class PrivateRabbitMq:
    """A private node. `restart` replaces it by a new node with the same folder and address."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._usage_of_ended_nodes: list[ProcessUsage] = []

    def restart(self) -> None:
        """End the node and start it again: durable queues and persistent messages survive, nothing else does."""
        self._usage_of_ended_nodes.append(self.node.usage())
        self.node = self.node.restart()

    def block_publishers(self) -> None:
        """Raise the memory alarm, as `rabbitmqctl set_vm_memory_high_watermark 0.0001` does."""
        self.node.set_memory_mark(0.0001)

    def unblock_publishers(self) -> None:
        self.node.set_memory_mark(self.node.facts()["settings"]["memory_mark"])

    def close_connections(self) -> None:
        """Close every connection with a reason, as `rabbitmqctl close_all_connections` does."""
        close = 'rabbit_networking:close_connection(Connection, "by the fault matrix")'
        self.node.evaluate(f"[{close} || Connection <- rabbit_networking:connections()]")

    def usage(self) -> ProcessUsage:
        """CPU time of all nodes so far; memory of the newest one."""
        return self.node.usage().with_earlier(self._usage_of_ended_nodes)

    def cpu_ns(self) -> int:
        return self.node.cpu_ns() + sum(ended.cpu_ns for ended in self._usage_of_ended_nodes)

    def facts(self) -> dict[str, Any]:
        return self.node.facts()

    def accepted(self) -> list[dict[str, Any]]:
        return self.node.accepted()


def _running(node: NodeAddress, server: BrokerServer | None = None) -> RunningBroker:
    url = f"{node.url}/{quote(node.vhost, safe='')}"
    return RunningBroker(url, {PASSWORD: node.password}, server or node)


class RabbitMqProbe:
    """A look at a run's queues. PeerGone or BadAddress if the broker cannot be reached, or refuses us."""

    def __init__(self, url: str, run: str, further: Sequence[str] = (), further_exchanges: Sequence[str] = ()) -> None:
        """`further`: names of queues in addition to NAMES; `further_exchanges` likewise, in addition to EXCHANGES."""
        self._run = run
        self._names = (*NAMES, *further)
        self._exchanges = (*EXCHANGES, *further_exchanges)
        self._session = BrokerSession.on_new_connection(BrokerAddress.of(Address.parse(url, run)), self._until_ns())

    @staticmethod
    def _until_ns() -> int:
        return time.monotonic_ns() + PATIENCE_NS

    @property
    def facts(self) -> dict[str, Any]:
        """The broker's product, version and platform, as it reports them."""
        properties = self._session.loop.connection.server_properties or {}
        return {name: properties.get(name) for name in ("product", "version", "platform")}

    def depth(self) -> dict[str, int]:
        """Messages in each of the run's queues that exist."""
        lengths = {name: self._length(f"{self._run}.{name}") for name in self._names}
        return {name: length for name, length in lengths.items() if length is not None}

    def _length(self, queue: str) -> int | None:
        until_ns = self._until_ns()
        try:
            return queue_length(self._session, queue, until_ns)
        except TransportError:
            self._session.renew_channel(until_ns)
            return None

    def take_down(self) -> None:
        """Delete the run's queues and exchanges, if any are left. RabbitMQ accepts the deletion of missing ones."""
        with contextlib.suppress(TransportError):
            self._session.ask(self._delete_all, self._until_ns())

    def _delete_all(self, done: Callable[..., None]) -> None:
        """Ask for an answer to the last deletion only, which comes once all others are done."""
        channel = self._session.channel
        *others, last = [exchange_of(self._run, ending).name for ending in self._exchanges]
        for name in self._names:
            channel.queue_delete(f"{self._run}.{name}")
        for exchange in others:
            channel.exchange_delete(exchange)
        channel.exchange_delete(last, callback=done)

    def close(self) -> None:
        self._session.close(self._until_ns())
