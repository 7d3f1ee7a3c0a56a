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
"""Names that users may type in place of a scheme, with that scheme. In a URL only the scheme is allowed."""


def transport_of(scheme: str) -> Transport:
    """The transport that serves a scheme.

    BadAddress, which lists the known schemes, if no transport serves the scheme. NotInstalled if the transport of that
    name cannot be imported. Other transports that cannot be imported are only mentioned in BadAddress.
    """
    name = scheme.partition("+")[0]
    problems = []
    for candidate, load in _candidates(name):
        try:
            transport = load()
        except Exception as error:  # whatever another distribution's module raises
            problem = _import_problem(candidate, error)
            if candidate == name:
                raise NotInstalled(problem) from error
            problems.append(problem)
            continue
        if transport is not None and scheme in transport.schemes:
            return transport
    schemes = known_schemes()
    sentence = f"unknown transport {scheme!r}: known are {', '.join(schemes)}"
    close_matches = difflib.get_close_matches(scheme, [*schemes, *ALIASES], n=1)
    if close_matches:
        sentence += f"; did you mean {ALIASES.get(close_matches[0], close_matches[0])}?"
    raise BadAddress("; ".join([sentence, *problems]))


def known_schemes(fits: Callable[[Transport, str], bool] = lambda _transport, _scheme: True) -> list[str]:
    """The schemes for which `fits` is true, of all transports that can be imported, also of other distributions."""
    schemes: set[str] = set()
    for _, load in _candidates():
        try:
            transport = load()
        except Exception:  # noqa: BLE001 (`transport_of` reports it when the transport is asked for by name)
            continue
        if transport is not None:
            schemes |= {scheme for scheme in transport.schemes if fits(transport, scheme)}
    return sorted(schemes)


def built_in() -> dict[str, Transport]:
    """The transports of this package, by name."""
    loaded = {name: load() for name, load in _of_this_package()}
    return {name: transport for name, transport in loaded.items() if transport is not None}


def has_broker(scheme_or_url: str) -> bool:
    """True if frames of a scheme, or of a URL, go through a broker; False also if no transport serves the scheme."""
    scheme = scheme_of(scheme_or_url)
    transport = _transport_or_none(scheme)
    return transport is not None and transport.has_broker(scheme)


def caution_of(scheme_or_url: str) -> str:
    """The sentence that belongs beside figures over a scheme, or a URL; empty if there is none."""
    scheme = scheme_of(scheme_or_url)
    transport = _transport_or_none(scheme)
    return transport.caution(scheme) if transport else ""


def remark_of(scheme_or_url: str) -> str:
    """The words that stand beside the name of a scheme, or a URL, in pictures and tables; empty if there are none."""
    scheme = scheme_of(scheme_or_url)
    transport = _transport_or_none(scheme)
    return transport.remarks.get(scheme, "") if transport else ""


def _transport_or_none(scheme: str) -> Transport | None:
    """The transport that serves the scheme; None if there is none, or if its module is not installed."""
    try:
        return transport_of(scheme)
    except (BadAddress, NotInstalled):
        return None


def scheme_of(transport: str) -> str:
    """The scheme of a URL, or of the part of one that a user gave: `tcp`, `zeromq?calls=plain`."""
    return transport.partition("?")[0].partition("://")[0]


def listen(url: str, token: str, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Link:
    """Open the end to which others connect. A port of 0 takes a free port, which the link's `url` names."""
    address, transport = _checked(url, token, pattern, keys)
    return transport.listen(address)


def connect(url: str, token: str, until_ns: int, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Link:
    """Open the end that connects to a listener. The listener may come up until `until_ns` of the monotonic clock."""
    address, transport = _checked(url, token, pattern, keys)
    return transport.connect(address, until_ns)


def _checked(url: str, token: str, pattern: Pattern, keys: tuple[str, ...]) -> tuple[Address, Transport]:
    """The address of a URL, and its transport, which accepts the address."""
    address = Address.parse(url, token, pattern, keys)
    transport = transport_of(address.scheme)
    transport.check(address)
    return address, transport


Import = Callable[[], Transport | None]


def _candidates(name: str = "") -> Iterator[tuple[str, Import]]:
    """Name and import of each transport. Those with the given name come first: importing all of them takes long."""
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
    """TRANSPORT of a module of this package; None if the module is no transport."""
    return getattr(importlib.import_module(f"transports.{name}"), "TRANSPORT", None)


def _import_entry(entry: EntryPoint) -> Transport:
    """The Transport that an entry point names: the object itself, or TRANSPORT of its module, else AttributeError."""
    loaded = entry.load()
    transport: Transport = loaded if isinstance(loaded, Transport) else loaded.TRANSPORT
    return transport


def _import_problem(name: str, error: Exception) -> str:
    """The sentence about a transport that cannot be imported."""
    if isinstance(error, ModuleNotFoundError):
        how = f"try `pip install {error.name}`, or see what the transport's own page says"
        return f"the transport {name!r} needs the Python module {error.name!r}, which is not installed: {how}"
    return f"the transport {name!r} cannot be imported: {type(error).__name__}: {error}"
