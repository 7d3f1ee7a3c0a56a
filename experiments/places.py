"""Where the components of a run meet: free ports, scratch paths, or names."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from transports.base import Address
from transports.registry import transport_of


@contextlib.contextmanager
def meeting_places(transport: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """(engine's URL, reporter's URL). The engine's is the transport itself where that names a place.

    A free port stays reserved while the context is open: a socket of ours is bound to it, and does not listen, so
    that nobody else is given the port, while the component, which also sets SO_REUSEADDR, may listen on it.
    """
    scheme, separator, place = transport.partition("://")
    kind = transport_of(scheme).places[scheme]
    with contextlib.ExitStack() as held:
        options = place.partition("?")[2]
        reporter = _free_place(kind, scratch / "reporter", held)
        engine = transport
        if not separator or not place.partition("?")[0]:
            engine = f"{scheme}://{_free_place(kind, scratch / 'engine', held)}" + (f"?{options}" if options else "")
        Address.parse(engine, "")
        yield engine, f"{scheme}://{reporter}"


def _free_place(kind: str, path: Path, held: contextlib.ExitStack) -> str:
    if kind == "path":
        return str(path)
    if kind == "name":
        return secrets.token_hex(8)
    holder = held.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{holder.getsockname()[1]}"


def as_seen_by_peers(url: str) -> str:
    """The address to connect to, where the listener listens on every interface."""
    return (
        url.replace("://0.0.0.0:", "://127.0.0.1:").replace("://[::]:", "://[::1]:").replace("://*:", "://127.0.0.1:")
    )
