"""Ports of this host, on which components of a run over several hosts listen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.hosts_file import LOOPBACK, HostsFile
from transports.base import TransportError
from transports.sockets import reserved_port


@contextlib.contextmanager
def reserved_here(file: HostsFile, component: str) -> Iterator[int]:
    """Reserve a free port at the address on which the component listens here. UserError if that cannot be had."""
    listens_on = file.entry_of(component).listens_on or LOOPBACK
    with contextlib.ExitStack() as stack:
        try:
            port = stack.enter_context(reserved_port(listens_on))
        except (OSError, TransportError) as error:
            raise UserError(f"{file.path}: [{component}]: cannot listen on {listens_on}: {error}") from error
        yield port
