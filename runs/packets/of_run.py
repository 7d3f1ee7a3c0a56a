"""tcpdump beside one run: between gateway and engine, or at the broker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from exchange.settings import RunSettings

if TYPE_CHECKING:
    from runs.network.network import Network
    from runs.packets.capture import Capture

FILE = "capture.pcap"
EVERY_INTERFACE = "any"


@contextlib.contextmanager
def capture_of(
    settings: RunSettings, urls: Iterable[str], folder: Path, network: Network | None, process_group: int
) -> Iterator[Capture | None]:
    """Under way as long as the context is open, if the settings ask for it. `urls`: the engines', or the broker's."""
    if not settings.capture:
        yield None
        return
    from runs.packets.capture import Capture
    from runs.packets.tcpdump import LOOPBACK

    there = "broker" if settings.has_broker else "engine"
    interface, prefix = (EVERY_INTERFACE, network.prefix(there)) if network else (LOOPBACK, ())
    ports = sorted({port for url in urls for port in ports_of(url)})
    with Capture(ports, folder / FILE, process_group=process_group, prefix=prefix, interface=interface) as capture:
        yield capture


def ports_of(url: str) -> list[int]:
    """The one on which peers meet, and the second one where each direction has its own."""
    parts = urlsplit(url)
    return [port for port in (parts.port, int(dict(parse_qsl(parts.query)).get("back", 0))) if port]
