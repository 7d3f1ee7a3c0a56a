"""Finds a transport by the scheme of its URL: scheme `zeromq+ipc` is served by TRANSPORT of transports/zeromq.

Other distributions have transports too: each is an entry point of the group `exchange_simulation.transports`, named
after its scheme, or the scheme's part before a `+`. It is a module with a TRANSPORT, or that object itself.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

import transports
from transports.base import Address, BadAddress, Link, NotInstalled, Pattern
from transports.declaration import Transport

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "exchange_simulation.transports"
ALIASES = {"zmq": "zeromq", "rabbitmq": "amqp", "rabbit": "amqp"}
"""Other names, which a user may type; a URL has the scheme."""


def transport_of(scheme: str) -> Transport:
    """The transport that serves a scheme.

    BadAddress, which lists the known schemes, if there is none; NotInstalled if the one of that name cannot be
    imported. Others that cannot be imported do no harm.
    """
    name = scheme.partition("+")[0]
    broken = []
    for candidate, load in _candidates(name):
        try:
            transport = load()
        except Exception as error:  # whatever another distribution's module raises
            why = _cannot_import(candidate, error)
            if candidate == name:
                raise NotInstalled(why) from error
            broken.append(why)
            continue
        if transport is not None and scheme in transport.places:
            return transport
    known = known_schemes()
    close = difflib.get_close_matches(scheme, [*known, *ALIASES], n=1)
    meant = f"; did you mean {ALIASES.get(close[0], close[0])}?" if close else ""
    raise BadAddress("; ".join([f"unknown transport {scheme!r}: known are {', '.join(known)}{meant}", *broken]))


def known_schemes(fits: Callable[[Transport, str], bool] = lambda _transport, _scheme: True) -> list[str]:
    """The schemes that fit, of transports of this package and of other distributions that can be imported."""
    schemes: set[str] = set()
    for _, load in _candidates():
        try:
            transport = load()
        except Exception:  # noqa: BLE001 (asking for it by name says why)
            continue
        if transport is not None:
            schemes |= {scheme for scheme in transport.places if fits(transport, scheme)}
    return sorted(schemes)


def built_in() -> dict[str, Transport]:
    """The transports of this package, by name."""
    loaded = {name: load() for name, load in _of_this_package()}
    return {name: transport for name, transport in loaded.items() if transport is not None}


def has_broker(transport: str) -> bool:
    """True if frames of this scheme, or URL, go through a broker; False also if no transport serves it."""
    scheme = scheme_of(transport)
    try:
        return transport_of(scheme).has_broker(scheme)
    except (BadAddress, NotInstalled):
        return False


def scheme_of(transport: str) -> str:
    """The scheme of a URL, or of the part of one that a user gave: `tcp`, `zeromq?calls=plain`."""
    return transport.partition("?")[0].partition("://")[0]


def listen(url: str, token: str, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Link:
    """Open the end that others connect to. A port of 0 becomes a free one, which the link's `url` has."""
    address, transport = _checked(url, token, pattern, keys)
    return transport.listen(address)


def connect(url: str, token: str, until_ns: int, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Link:
    """Open the end that goes to a listener, which may come up later, until `until_ns` of the monotonic clock."""
    address, transport = _checked(url, token, pattern, keys)
    return transport.connect(address, until_ns)


def _checked(url: str, token: str, pattern: Pattern, keys: tuple[str, ...]) -> tuple[Address, Transport]:
    address = Address.parse(url, token, pattern, keys)
    transport = transport_of(address.scheme)
    transport.check(address)
    return address, transport


Import = Callable[[], Transport | None]


def _candidates(name: str = "") -> Iterator[tuple[str, Import]]:
    """Name and import of each transport. Those of the given name come first, since importing all of them takes long."""
    for candidates in (_of_this_package, _of_other_distributions):
        for candidate, load in candidates():
            if candidate == name:
                yield candidate, load
    for candidate, load in (*_of_this_package(), *_of_other_distributions()):
        if candidate != name:
            yield candidate, load


@cache
def _of_this_package() -> tuple[tuple[str, Import], ...]:
    names = [module.name for module in pkgutil.iter_modules(transports.__path__)]
    return tuple((name, partial(_import_built_in, name)) for name in names)


@cache
def _of_other_distributions() -> tuple[tuple[str, Import], ...]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return tuple((entry.name, partial(_import_entry, entry)) for entry in entry_points(group=GROUP))


def _import_built_in(name: str) -> Transport | None:
    """None if the module is no transport."""
    return getattr(importlib.import_module(f"transports.{name}"), "TRANSPORT", None)


def _import_entry(entry: EntryPoint) -> Transport:
    """AttributeError if there is no TRANSPORT."""
    loaded = entry.load()
    transport: Transport = loaded if isinstance(loaded, Transport) else loaded.TRANSPORT
    return transport


def _cannot_import(name: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        how = f"try `pip install {error.name}`, or see what the transport's own page says"
        return f"the transport {name!r} needs the Python module {error.name!r}, which is not installed: {how}"
    return f"the transport {name!r} cannot be imported: {type(error).__name__}: {error}"
