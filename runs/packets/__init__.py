"""Table 1 of the paper: packets of a run, by the kernel's counters, and by tcpdump as a check of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from transports.registry import has_broker

if TYPE_CHECKING:
    from exchange.settings import RunSettings
    from runs.network.network import Network
    from runs.packets.capture import Capture

FILE = "capture.pcap"
EVERY_INTERFACE = "any"


@contextlib.contextmanager
def capture_of(
    settings: RunSettings, urls: Iterable[str], folder: Path, network: Network | None, process_group: int
) -> Iterator[Capture | None]:
    """tcpdump beside a run, inside the context; None by default. `urls` are the engines', or the broker's."""
    if not settings.capture:
        yield None
        return
    from runs.packets.capture import LOOPBACK, Capture

    role = "broker" if has_broker(settings.transport) else "engine"
    interface, prefix = (EVERY_INTERFACE, network.prefix(role)) if network else (LOOPBACK, ())
    ports = sorted({port for url in urls for port in ports_of(url)})
    with Capture(ports, folder / FILE, process_group=process_group, prefix=prefix, interface=interface) as capture:
        yield capture


def ports_of(url: str) -> list[int]:
    """The port on which peers meet, and the second one if each direction has its own."""
    parts = urlsplit(url)
    return [port for port in (parts.port, int(dict(parse_qsl(parts.query)).get("back", 0))) if port]
