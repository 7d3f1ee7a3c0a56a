"""Finds a transport by the scheme of its URL: scheme `zeromq+ipc` lives in transports/zeromq, as TRANSPORT."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import transports
from transports.base import Address, BadAddress, Link, Transport
from transports.pattern import Pattern


def transport_of(scheme: str) -> Transport:
    """The transport that serves a scheme. BadAddress, listing the known ones, where none does."""
    name = scheme.partition("+")[0]
    likely = [name] if name in _names() else []
    for each in (*likely, *_names()):
        transport = _declared(each)
        if transport is not None and scheme in transport.places:
            return transport
    raise BadAddress(f"unknown transport {scheme!r}: known are {', '.join(known_schemes())}")


@cache
def _names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(transports.__path__)]


def _declared(name: str) -> Transport | None:
    transport: Transport | None = getattr(importlib.import_module(f"transports.{name}"), "TRANSPORT", None)
    return transport


def scheme_of(transport: str) -> str:
    """The scheme of a URL, or of the part of one that a user gave: `tcp`, `zeromq?calls=plain`."""
    return transport.partition("?")[0].partition("://")[0]


def known_schemes() -> list[str]:
    """Every scheme that some file of this package serves."""
    declared = filter(None, map(_declared, _names()))
    return sorted(scheme for transport in declared for scheme in transport.places)


def listen(url: str, token: str, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Link:
    """Open the end that others connect to; a port of 0 becomes a free one, see the link's `url`."""
    address = Address.parse(url, token, pattern, keys)
    transport = transport_of(address.scheme)
    transport.check(address)
    return transport.listen(address)


def connect(url: str, token: str, until_ns: int, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Link:
    """Open the end that goes to a listener, which may come up later, until `until_ns` of the monotonic clock."""
    address = Address.parse(url, token, pattern, keys)
    transport = transport_of(address.scheme)
    transport.check(address)
    return transport.connect(address, until_ns)
