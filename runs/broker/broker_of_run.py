"""The broker of a run: one that exists, the one that `exchange broker start` left up, one that is kept for several
runs, or one of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from exchange.settings import RunSettings
from transports.amqp.address import PASSWORD, BrokerAddress, mask
from transports.base import Address, BadAddress

if TYPE_CHECKING:
    from runs.broker.brokers_held import Brokers
    from runs.network.network import Network
    from transports.rabbitmq import NodeAddress, NodeSettings


class OurNode(Protocol):
    """A broker whose process is ours to measure."""

    def usage(self) -> Any:
        """Counters with `since(earlier)`, which names them as a component's."""

    def cpu_ns(self) -> int:
        """Since it was started; OSError where it is gone."""

    def facts(self) -> dict[str, Any]: ...

    def accepted(self) -> list[dict[str, Any]]:
        """Its ends of its connections, as read back; OSError where we may not look."""


@dataclass(frozen=True)
class BrokerOfRun:
    url: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its clients need to know beside: the password."""
    node: OurNode | None = None
    is_reachable: bool = True
    """From here, that is; its clients can, wherever they are."""


@contextlib.contextmanager
def broker_of_run(
    settings: RunSettings, scratch: Path, process_group: int | None, brokers: Brokers | None = None,
    network: Network | None = None,
) -> Iterator[BrokerOfRun]:  # fmt: skip
    """Plain `amqp` never meets somebody else's broker; an address is taken as it stands.

    A private node comes from `brokers`, and stays with them, or is started here, and ends here.
    """
    scheme, _, place = settings.transport.partition("?")[0].partition("://")
    if "?" in settings.transport:
        raise BadAddress(f"{mask(settings.transport)}: say it with --amqp-client and --delivery")
    if place and "broker" in settings.nagle:
        raise BadAddress(
            f"{mask(settings.transport)} is not ours, so its TCP_NODELAY cannot be changed: leave broker out of "
            "--nagle, or use plain amqp"
        )
    if place:
        url = _with_options(settings, f"{scheme}://{place}")
        BrokerAddress.of(Address.parse(url, token=""))  # a mistake in it is said before anything starts
        yield BrokerOfRun(url)
        return
    if scheme != "amqp":
        raise BadAddress(f"{scheme} needs an address: {scheme}://user@host:port/vhost")
    with _private_node(settings, scratch, process_group, brokers, network) as node:
        place = f"{quote(node.user)}@{node.host}:{node.port}/{quote(node.vhost, safe='')}"
        url, environment = _with_options(settings, f"amqp://{place}"), {PASSWORD: node.password}
        yield BrokerOfRun(url, environment, node, is_reachable=network is None)


@contextlib.contextmanager
def _private_node(
    settings: RunSettings, scratch: Path, process_group: int | None, brokers: Brokers | None, network: Network | None
) -> Iterator[NodeAddress]:
    """A network is the run's own, and so is a node in it."""
    from transports.rabbitmq import Where, private_node

    asked = node_settings(settings)
    if network is not None:
        there = Where(network.address["broker"], tuple(network.prefix("broker")), partial(network.socket, "broker"))
        with private_node(scratch / "broker", process_group, asked, there) as own:
            yield own
        return
    if kept := brokers.node(asked) if brokers is not None else standing_node(asked):
        yield kept
        return
    with private_node(scratch / "broker", process_group, asked) as own:
        yield own


def standing_node(asked: NodeSettings) -> NodeAddress | None:
    """The one that `exchange broker start` left up, if it has the TCP_NODELAY that a run asks for."""
    from transports.rabbitmq import running_node

    node = running_node()
    return node if node is not None and node.facts()["settings"]["nodelay"] == asked.nodelay else None


def node_settings(settings: RunSettings) -> NodeSettings:
    """How a run has its private node set."""
    from transports.rabbitmq import NodeSettings

    return NodeSettings(nodelay="broker" not in settings.nagle)


def _with_options(settings: RunSettings, url: str) -> str:
    """The settings as the options of a URL, which every component is given."""
    return f"{url}?client={settings.amqp_client}&delivery={settings.delivery}"
