"""The broker of a run: one that exists, the one that `exchange broker start` left up, or one of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from exchange.settings import RunSettings
from transports.amqp.address import PASSWORD, BrokerAddress, mask
from transports.base import Address, BadAddress


class OurNode(Protocol):
    """A broker whose process is ours to measure."""

    def usage(self) -> Any:
        """Counters with `since(earlier)`, which names them as a component's."""

    def facts(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class BrokerOfRun:
    url: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its clients need to know beside: the password."""
    node: OurNode | None = None


@contextlib.contextmanager
def broker_of_run(settings: RunSettings, scratch: Path, process_group: int | None) -> Iterator[BrokerOfRun]:
    """Plain `amqp` never meets somebody else's broker; an address is taken as it stands."""
    scheme, _, place = settings.transport.partition("?")[0].partition("://")
    if "?" in settings.transport:
        raise BadAddress(f"{mask(settings.transport)}: say it with --amqp-client and --delivery")
    if place:
        url = _with_options(settings, f"{scheme}://{place}")
        BrokerAddress.of(Address.parse(url, token=""))  # a mistake in it is said before anything starts
        yield BrokerOfRun(url)
        return
    if scheme != "amqp":
        raise BadAddress(f"{scheme} needs an address: {scheme}://user@host:port/vhost")
    from transports.rabbitmq import private_node, running_node

    with contextlib.ExitStack() as held:
        node = running_node() or held.enter_context(private_node(scratch / "broker", process_group))
        place = f"{quote(node.user)}@{node.host}:{node.port}/{quote(node.vhost, safe='')}"
        yield BrokerOfRun(_with_options(settings, f"amqp://{place}"), {PASSWORD: node.password}, node)


def _with_options(settings: RunSettings, url: str) -> str:
    """The settings as the options of a URL, which every component is given."""
    return f"{url}?client={settings.amqp_client}&delivery={settings.delivery}"
