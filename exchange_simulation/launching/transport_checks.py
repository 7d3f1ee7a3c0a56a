"""Checks the settings of a run before anything is started: what its transport can do, and what this host allows."""

from __future__ import annotations

import math
import resource
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from exchange.settings import TRANSPORT_SETTINGS, RunSettings
from exchange_simulation.launching.errors import UserError, users_mistake
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.transport_urls import (
    declared_transport,
    options_in,
    url_options_of,
    with_keys,
    with_option,
)
from transports.base import Address, Pattern, TransportError, mask
from transports.declaration import Transport
from transports.registry import known_schemes, scheme_of

Fits = Callable[[Transport, str], bool]
"""A function that returns whether a transport, with one of its schemes, has a feature."""

DESCRIPTORS_OF_PEER = 16
"""The most files that a gateway or an engine takes in another process: a link at a peer, or pipes at the launcher."""
DESCRIPTORS_OF_SUBSCRIBER = 6
"""The most files that a subscriber takes in another process: connections of a link, or pipes at the launcher."""
OTHER_DESCRIPTORS = 64


def check_transport(settings: RunSettings) -> None:
    """UserError if the transport lacks a feature of the settings, or is open to other hosts without --insecure.

    Call this once for a run, before anything is started. With --insecure, an open address gets a warning.
    """
    check_descriptors(settings)
    transport = declared_transport(settings.transport)
    scheme = scheme_of(settings.transport)

    def require(fits: Fits, sentence: str) -> None:
        if not fits(transport, scheme):
            raise UserError(f"{sentence}: use {schemes_that_fit(fits)}")

    if settings.nagle:
        require(has_tcp, f"--nagle is {','.join(settings.nagle)}; {scheme} has no TCP sockets")
    if settings.topology == "simplex":
        require(has_simplex, f"--topology is simplex; {scheme} has no connection for each direction")
    if settings.recover:
        require(has_processes, f"--recover starts processes again; {scheme} has one for all")
    if settings.cpus:
        require(has_processes, f"--cpus places processes on processors; {scheme} has one process for all")
    if settings.secure:
        require(has_encryption, f"--secure is {settings.secure}; {scheme} has no encryption")
    if settings.capture:
        require(has_tcp, f"--capture is for TCP; {scheme} has no packets")
    if settings.subscribers:
        require(
            has_market_data,
            f"--subscribers is {settings.subscribers}; {scheme} cannot carry market data between processes",
        )
        _check_slow_subscriber(settings, transport, scheme)
    has_queues_for_one_pair = transport.has_broker(scheme) and "pair" not in transport.options
    if settings.pairs > 1 and has_queues_for_one_pair:
        raise UserError(f"--pairs is {settings.pairs}; {scheme} has queues for one pair only")
    if settings.gateways > 1 and has_queues_for_one_pair:
        raise UserError(f"--gateways is {settings.gateways}; {scheme} has queues for one gateway only")
    if settings.engines > 1 and has_queues_for_one_pair:
        raise UserError(f"--engines is {settings.engines}; {scheme} has queues for one engine only")
    if settings.network != "local" and not network_fits(settings.network, transport, settings.transport):
        fitting = schemes_that_fit(partial(network_fits, settings.network))
        raise UserError(
            f"--network is {settings.network}; {settings.transport} cannot be there: use {fitting}, without an address"
        )
    if settings.secure:
        _check_keys(settings.secure)
    check_exposure(with_keys(settings.transport, settings.secure), settings.insecure)


def _check_slow_subscriber(settings: RunSettings, transport: Transport, scheme: str) -> None:
    """UserError if the transport cannot do with a slow subscriber what was asked for."""
    rule = settings.slow_subscriber
    rules = transport.slow_subscriber_rules(options_in(settings.transport))
    if rule not in rules:
        can = " or ".join(rules)
        raise UserError(f"--slow-subscriber is {rule}, which {scheme} cannot do for one subscriber alone: use {can}")


def _check_keys(folder: str) -> None:
    from transports.keys import Keys

    with users_mistake(TransportError):
        Keys.checked(Path(folder))


def check_exposure(url: str, insecure: bool) -> None:
    """UserError if other hosts reach this listener and nothing is encrypted; with `insecure`, a warning instead.

    A malformed address passes here, since the transport refuses it.
    """
    _, _, place_and_options = url.partition("://")
    place, _, _ = place_and_options.partition("?")
    host, _, port = place.rpartition(":")
    is_port = declared_transport(url).places[scheme_of(url)] == "port" and port.isdecimal()
    is_encrypted = bool(options_in(url).get("keys"))
    if not is_port or is_encrypted or _is_loopback(host.strip("[]")):
        return
    exposed = f"{url} is open to other hosts, and nothing is encrypted"
    if not insecure:
        raise UserError(f"{exposed}: give --secure DIR (exchange keys makes one), or --insecure on your own network")
    say(f"warning: {exposed}")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def check_descriptors(settings: RunSettings) -> None:
    """UserError if this system lets a process open too few files for the gateways, engines and subscribers."""
    counts = {"--gateways": settings.gateways, "--engines": settings.engines, "--subscribers": settings.subscribers}
    is_market = max(counts.values()) > 1
    peers = settings.gateways + settings.engines - 1
    needed = OTHER_DESCRIPTORS + DESCRIPTORS_OF_PEER * peers + DESCRIPTORS_OF_SUBSCRIBER * settings.subscribers
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not is_market or limit == resource.RLIM_INFINITY or limit >= needed:
        return
    several = [f"{option} is {count}" for option, count in counts.items() if count > 1]
    raise UserError(
        f"{', '.join(several)}: for that a process may need {needed} open files, and this system allows {limit}: "
        f"raise that with ulimit -n {needed}, or take fewer components"
    )


def check_warm_up(settings: RunSettings) -> None:
    """UserError if the warm-up, rounded up to whole seconds, is as long as the run: nothing would be analysed."""
    length_s = settings.length_s
    if length_s is None or not settings.warm_up_s:
        return
    if math.ceil(settings.warm_up_s) >= length_s:
        raise UserError(f"--warm-up {settings.warm_up_s:g} leaves nothing of a run of {length_s:g} s to analyse")


def check_url(settings: RunSettings, transport: Transport, scheme: str, patterns: Iterable[Pattern]) -> None:
    """UserError for a mistake in the transport's URL, before anything is started. It quotes the URL as it was typed."""
    base, _, query = settings.transport.partition("?")
    given = Counter(name for name, _ in parse_qsl(query, keep_blank_values=True))
    if not given and "://" not in base:
        return
    for name, times in given.items():
        if times > 1:
            raise UserError(f"{mask(settings.transport)}: {name} is there more than once: give each option once")
    for name, option in transport.run_settings.items():
        if option in given:
            raise UserError(f"{mask(settings.transport)}: say {option} with --{name.replace('_', '-')}")
    # A scheme alone has no place yet, but the checks need a whole URL.
    some_place = base if "://" in base else f"{scheme}://somewhere"
    url_with_query = with_option(some_place, query)
    url = with_option(url_with_query, url_options_of(settings))
    try:
        for pattern in patterns:
            address = Address.parse(url, "", pattern)
            transport.check(address)
            if transport.has_broker(scheme) and transport.broker:
                transport.broker().check(address)
    except TransportError as error:
        typed = str(error).replace(mask(url), mask(settings.transport))
        raise UserError(typed.replace("://somewhere", "")) from error


def check_server(asked: str) -> None:
    """UserError if a transport needs a server that this host would start, and that is not installed here."""
    transport = declared_transport(asked)
    scheme = scheme_of(asked)
    has_place = "://" in asked
    if has_place or transport.broker is None:
        return
    broker = transport.broker()
    if scheme in broker.starts:
        with users_mistake(TransportError):
            broker.installed()


def check_settings_fit_a_transport(settings: Mapping[str, Any], transports: Iterable[str]) -> None:
    """UserError for a given setting that some transports have, but none of these."""
    names = settings_that_none_has(settings, transports)
    if not names:
        return
    name = names[0]
    option = f"--{name.replace('_', '-')}"
    fitting = schemes_that_fit(partial(_has_setting, name))
    raise UserError(f"{option} is {settings[name]}, which {', '.join(transports)} cannot have: use {fitting}")


def settings_that_none_has(settings: Mapping[str, Any], transports: Iterable[str]) -> list[str]:
    """Return the names of settings that are given and that none of these transports has."""
    declared = [declared_transport(transport) for transport in transports]
    names = []
    for name in TRANSPORT_SETTINGS:
        if settings.get(name) and not any(name in transport.run_settings for transport in declared):
            names.append(name)
    return names


def _has_setting(name: str, transport: Transport, _scheme: str) -> bool:
    return name in transport.run_settings


def has_tcp(transport: Transport, scheme: str) -> bool:
    return scheme in transport.over_tcp


def has_processes(transport: Transport, scheme: str) -> bool:
    return scheme not in transport.one_process


def has_simplex(transport: Transport, scheme: str) -> bool:
    return scheme in transport.simplex


def has_market_data(transport: Transport, scheme: str) -> bool:
    return bool(transport.slow_subscriber) and has_processes(transport, scheme)


def has_encryption(transport: Transport, scheme: str) -> bool:
    return "keys" in transport.options and has_processes(transport, scheme)


def network_fits(network: str, transport: Transport, asked: str) -> bool:
    """Return True if the launcher can find addresses for the transport in the network, or start its broker there.

    `asked` is the transport as the user typed it: a scheme, or a URL.
    """
    from exchange_simulation.launching.network.profile import parse

    scheme = scheme_of(asked)
    if parse(network).is_local:
        return True
    if "://" in asked or scheme not in transport.over_tcp:
        return False
    return not transport.has_broker(scheme) or (transport.broker is not None and scheme in transport.broker().starts)


def runs_in_one_process(transport: str) -> bool:
    """True if the transport cannot leave a process."""
    return not has_processes(declared_transport(transport), scheme_of(transport))


def schemes_that_fit(fits: Fits) -> str:
    """Return the schemes of all transports that fit, in words. For example: amqp, tcp or zeromq"""
    *others, last = known_schemes(fits)
    return f"{', '.join(others)} or {last}" if others else last
