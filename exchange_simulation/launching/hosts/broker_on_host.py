"""The broker of a run on another host: its agent starts it, and it ends with the agent."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from exchange.settings import RunSettings
from exchange_simulation.launching.hosts.checks import BROKER
from exchange_simulation.launching.hosts.host_agents import HostAgent
from exchange_simulation.launching.hosts.hosts_file import LOOPBACK, HostEntry
from exchange_simulation.launching.transport_urls import with_other_keys
from transports.declaration import RunningBroker

CONNECT_S = 2.0
"""The longest time for a connection to the broker."""


def broker_on_host(agent: HostAgent, entry: HostEntry, settings: RunSettings, keys: str | None) -> RunningBroker:
    """Start the broker of a run on the agent's host, and return it. Its URL has the settings as options.

    `entry` is the broker's table, `keys` the folder of keys on that host. UserError if it does not start, HostGone.
    """
    listens_on = entry.listens_on or LOOPBACK
    answer = agent.start_broker(_settings_of_broker(settings, listens_on, keys))
    url = url_for_peers(answer["url"], listens_on, entry.address or LOOPBACK)
    if keys is not None and settings.secure is not None:
        url = with_other_keys(url, keys, settings.secure)
    return RunningBroker(url, answer["environment"], is_reachable=_is_reachable(url))


def _settings_of_broker(settings: RunSettings, listens_on: str, keys: str | None) -> dict[str, Any]:
    """Return those settings of a run that its broker needs, and the address on which the broker listens."""
    return {
        "address": listens_on,
        "transport": settings.transport,
        "nagle": [role for role in settings.nagle if role == BROKER],
        "priority": settings.priority,
        "cpus": {name: cpu for name, cpu in settings.cpus.items() if name == BROKER},
        "secure": keys,
        "insecure": settings.insecure,
        "amqp_client": settings.amqp_client,
        "delivery": settings.delivery,
    }


def url_for_peers(url: str, listens_on: str, address: str) -> str:
    """Return a broker's URL with the address at which peers find it. A user's name may stand before the address."""
    scheme, _, rest = url.partition("://")
    place, question_mark, options = rest.partition("?")
    user, at_sign, host_and_port = place.rpartition("@")
    place_for_peers = host_and_port.replace(f"{listens_on}:", f"{address}:", 1)
    return f"{scheme}://{user}{at_sign}{place_for_peers}{question_mark}{options}"


def _is_reachable(url: str) -> bool:
    """Return True if this host reaches the broker of this URL. Else only the run's other hosts do."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname, place.port or 0), CONNECT_S).close()
    except OSError:
        return False
    return True
