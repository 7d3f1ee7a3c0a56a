"""Fills in and checks those of a run's settings that depend on its transport, or on its length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from exchange.allowed import BadSetting, one_of
from exchange.settings import ROLES, TRANSPORT_SETTINGS, RunSettings
from exchange_simulation.launching.errors import UserError, users_mistake
from exchange_simulation.launching.notices import say
from transports.base import LEFT_AS_THEY_ARE, Address, Pattern, TransportError, mask
from transports.declaration import Transport
from transports.registry import known_schemes, scheme_of, transport_of


def settled(settings: RunSettings, patterns: Iterable[Pattern] = ()) -> RunSettings:
    """The settings with the transport's own defaults filled in; links are pairs, and of these patterns.

    BadSetting for a setting, or a word of it, that the transport lacks; UserError if there is no such transport.
    """
    transport, scheme = _declared(settings.transport), scheme_of(settings.transport)
    lacks = "no such option" if transport.has_broker(scheme) else "no broker"
    own: dict[str, Any] = {}
    for name in TRANSPORT_SETTINGS:
        value, option = getattr(settings, name), transport.run_settings.get(name)
        words = transport.words(option)
        if not option and value is not None:
            raise BadSetting(name, value, f"nothing: {settings.transport} has {lacks}")
        if words and value is not None:
            one_of(name, value, words)
        own[name] = words[0] if words and value is None else value
    if "broker" in settings.nagle and not transport.has_broker(scheme):
        raise BadSetting("nagle", "broker", f"{', '.join(ROLES)}; {settings.transport} has no broker")
    found = replace(settings, **own)
    _check_url(found, transport, scheme, (Pattern.PAIR, *patterns))
    return found


def _check_url(settings: RunSettings, transport: Transport, scheme: str, patterns: Iterable[Pattern]) -> None:
    """UserError for a mistake in the options of the transport's URL, before anything is started."""
    base, _, query = settings.transport.partition("?")
    given = Counter(name for name, _ in parse_qsl(query, keep_blank_values=True))
    if not given:
        return
    if twice := [name for name, times in given.items() if times > 1]:
        raise UserError(f"{mask(settings.transport)}: {twice[0]} is there more than once: give each option once")
    for name, option in transport.run_settings.items():
        if option in given:
            raise UserError(f"{mask(settings.transport)}: say {option} with --{name.replace('_', '-')}")
    url = with_option(with_option(base if "://" in base else f"{scheme}://somewhere", query), as_options(settings))
    try:
        for pattern in patterns:
            transport.check(address := Address.parse(url, "", pattern))
            if transport.has_broker(scheme) and transport.broker:
                transport.broker().check(address)
    except TransportError as error:
        typed = str(error).replace(mask(url), mask(settings.transport))
        raise UserError(typed.replace("://somewhere", "")) from error


Fits = Callable[[Transport, str], bool]
"""True if a transport has what is asked for, at this one of its schemes."""


def has_tcp(transport: Transport, scheme: str) -> bool:
    return scheme in transport.over_tcp


def has_processes(transport: Transport, scheme: str) -> bool:
    return scheme not in transport.one_process


def runs_in_one_process(transport: str) -> bool:
    """True if the transport cannot leave a process."""
    return not has_processes(_declared(transport), scheme_of(transport))


def check_warm_up(settings: RunSettings) -> None:
    """UserError if analysis, which leaves out whole seconds, would have nothing left of the run."""
    if (length_s := settings.length_s) is not None and settings.warm_up_s and math.ceil(settings.warm_up_s) >= length_s:
        raise UserError(f"--warm-up {settings.warm_up_s:g} leaves nothing of a run of {length_s:g} s to analyse")


def check_transport(settings: RunSettings) -> None:
    """UserError if the transport lacks what the settings ask for, or if its place is open without --insecure.

    Whoever makes a run calls it once, before anything is started. It warns of a place that is open with --insecure.
    """
    transport, scheme, nagle = _declared(settings.transport), scheme_of(settings.transport), ",".join(settings.nagle)
    asked_for: list[tuple[object, Fits, str]] = [
        (nagle, has_tcp, f"--nagle is {nagle}; {scheme} has no TCP sockets"),
        (
            settings.topology == "simplex",
            lambda transport, scheme: scheme in transport.simplex,
            f"--topology is simplex; {scheme} has no connection for each direction",
        ),
        (settings.recover, has_processes, f"--recover starts processes again; {scheme} has one for all"),
        (
            settings.secure,
            lambda transport, scheme: "keys" in transport.options and has_processes(transport, scheme),
            f"--secure is {settings.secure}; {scheme} has no encryption",
        ),
        (settings.capture, has_tcp, f"--capture is for TCP; {scheme} has no packets"),
    ]
    for is_asked_for, fits, sentence in asked_for:
        if is_asked_for and not fits(transport, scheme):
            raise UserError(f"{sentence}: use {those_that(fits)}")
    if max(settings.pairs, settings.reporters) > 1 and transport.has_broker(scheme) and "pair" not in transport.options:
        raise UserError(f"--pairs is {settings.pairs}; {scheme} has queues for one pair only")
    if settings.network != "local" and not network_fits(settings.network, transport, settings.transport):
        lacks = f"--network is {settings.network}; {settings.transport} cannot be there"
        raise UserError(f"{lacks}: use {those_that(partial(network_fits, settings.network))}, by name alone")
    if settings.secure:
        _check_keys(settings.secure)
    check_exposure(with_keys(settings.transport, settings.secure), settings.insecure)


def check_some_have(settings: Mapping[str, Any], transports: Iterable[str]) -> None:
    """UserError for a setting that only some transports have, where it is given and none of these has it."""
    for name in ignored(settings, transports):
        given = f"--{name.replace('_', '-')} is {settings[name]}, which {', '.join(transports)} cannot have"
        raise UserError(f"{given}: use {those_that(partial(_has_setting, name))}")


def ignored(settings: Mapping[str, Any], transports: Iterable[str]) -> list[str]:
    """The names of settings that are given and that none of these transports has."""
    declared = [_declared(each) for each in transports]
    given = (name for name in TRANSPORT_SETTINGS if settings.get(name))
    return [name for name in given if not any(_has_setting(name, each, "") for each in declared)]


def _has_setting(name: str, transport: Transport, _scheme: str) -> bool:
    return name in transport.run_settings


def those_that(fits: Fits) -> str:
    """The schemes of all transports that fit, as in: amqp, tcp or zeromq; for sentences that say what to use."""
    *others, last = known_schemes(fits)
    return " or ".join(filter(None, (", ".join(others), last)))


def _check_keys(folder: str) -> None:
    from transports.keys import Keys

    with users_mistake(TransportError):
        Keys.checked(Path(folder))


def network_fits(network: str, transport: Transport, asked: str) -> bool:
    """True if the launcher can find TCP places for it in another network namespace, or start its broker there."""
    from exchange_simulation.launching.network.profile import parse

    scheme = scheme_of(asked)
    if parse(network).is_local:
        return True
    if "://" in asked or scheme not in transport.over_tcp:
        return False
    return not transport.has_broker(scheme) or (transport.broker is not None and scheme in transport.broker().starts)


def _declared(asked: str) -> Transport:
    """The transport of a scheme, or URL. UserError if there is none, or it lacks a client library."""
    scheme = scheme_of(asked)
    with users_mistake(TransportError):
        transport = transport_of(scheme)
        transport.check_installed(scheme)
    return transport


def defaults_of(transport: str) -> dict[str, str]:
    """Settings that this transport has and others may lack, each with its default; empty if it is not known."""
    try:
        found = transport_of(scheme_of(transport))
    except TransportError:
        return {}
    return {name: found.words(option)[0] for name, option in found.run_settings.items()}


def settings_of_url(url: str) -> dict[str, Any]:
    """The settings that a component's URL carries; without a transport's own if there is no such transport."""
    options = dict(parse_qsl(url.partition("?")[2]))
    try:
        carried = transport_of(scheme_of(url)).run_settings
    except TransportError:
        carried = {}
    own = {name: options.get(option) for name, option in carried.items()}
    return {"transport": mask(url), "topology": options.get("topology", "duplex"), **own}


def as_options(settings: RunSettings) -> str:
    """The transport's own settings, and the keys, as the query of a URL, which every component gets."""
    carried = transport_of(scheme_of(settings.transport)).run_settings
    options = "&".join(f"{option}={getattr(settings, name)}" for name, option in carried.items())
    return "&".join(filter(None, (options, with_keys("", settings.secure)[1:])))


def with_keys(url: str, secure: str | None) -> str:
    """The URL with the folder of keys as an option, if there is one."""
    option = f"keys={quote(secure, safe=LEFT_AS_THEY_ARE)}" if secure else ""
    return url if not option or option in url else with_option(url, option)


def check_exposure(url: str, insecure: bool) -> None:
    """UserError if other hosts reach this listener and nothing is encrypted; a warning if that is wanted.

    An address with a mistake is left to the transport.
    """
    scheme, (place, _, options) = scheme_of(url), url.partition("://")[2].partition("?")
    host, _, port = place.rpartition(":")
    is_port = _declared(url).places[scheme] == "port" and port.isdecimal()
    if not is_port or "keys" in dict(parse_qsl(options)) or _is_loopback(host.strip("[]")):
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


def with_option(url: str, option: str) -> str:
    """The URL with `name=value` added; an empty option adds nothing."""
    return f"{url}{'&' if '?' in url else '?'}{option}" if option else url
