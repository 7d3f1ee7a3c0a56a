"""The network of a run: none but loopback, unless its settings ask for one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from exchange.settings import ROLES, RunSettings
from runs.network.profile import parse

if TYPE_CHECKING:
    from runs.network.network import Network


@contextlib.contextmanager
def network_of(settings: RunSettings, process_group: int) -> Iterator[Network | None]:
    """Up as long as the context is open; None where all is on loopback. UserError where this machine cannot have it."""
    profile = parse(settings.network)
    if profile.is_local:
        yield None
        return
    from runs.network.network import Network

    roles = (*ROLES, "broker") if settings.has_broker else ROLES
    with Network.up(profile, roles, process_group=process_group) as network:
        yield network
