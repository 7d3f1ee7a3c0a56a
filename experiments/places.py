"""Where the components of a run meet: free ports, scratch paths, or names."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from transports.registry import scheme_of, transport_of


@contextlib.contextmanager
def meeting_places(transport: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """(engine's URL, reporter's URL). The engine's is the transport itself where that names a place.

    A free port stays reserved while the context is open: a socket of ours is bound to it, and does not listen, so
    that nobody else is given the port, while the component, which also sets SO_REUSEADDR, may listen on it.
    """
    scheme = scheme_of(transport)
    kind = transport_of(scheme).places[scheme]
    asked, question_mark, options = transport.partition("?")
    with contextlib.ExitStack() as held:
        place = asked.partition("://")[2] or _free_place(kind, scratch / "engine", held)
        reporter = _free_place(kind, scratch / "reporter", held)
        yield f"{scheme}://{place}{question_mark}{options}", f"{scheme}://{reporter}"


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
