"""Networks for runs: namespaces of their own for the components, joined by links with a rate and a delay.

    gateway ──┐ orders, 10.77.1.0/24: at the profile's rate and delay ┌── engine
              ├───────────────────────────────────────────────────────┤
    broker ───┘                                                       └── (no reporter)

    gateway, engine, broker, reporter ── reports, 10.77.2.0/24: as fast as veth is

One process, the holder, makes the network and keeps it: when it ends, the kernel removes everything.
Start reading at network.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from transports.registry import has_broker

if TYPE_CHECKING:
    from exchange.settings import RunSettings
    from runs.network.network import Network


@contextlib.contextmanager
def network_of(settings: RunSettings, process_group: int) -> Iterator[Network | None]:
    """A run's network, up inside the context; None for loopback. UserError if this machine cannot have the network."""
    from runs.network.profile import parse

    profile = parse(settings.network)
    if profile.is_local:
        yield None
        return
    from runs.network.network import ROLES, Network

    roles = (*ROLES, "broker") if has_broker(settings.transport) else ROLES
    with Network.up(profile, roles, process_group=process_group) as network:
        yield network
