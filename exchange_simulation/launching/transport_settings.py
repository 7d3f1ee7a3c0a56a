"""Fills in and checks the settings of a run that depend on its transport or on its length."""

from __future__ import annotations

import math
import re
import resource
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from exchange.allowed import BadSetting, one_of
from exchange.settings import ROLES, TRANSPORT_SETTINGS, RunSettings
from exchange_simulation.launching.errors import UserError, users_mistake
from exchange_simulation.launching.notices import say
from transports.base import Address, Pattern, TransportError, mask, quoted
from transports.declaration import Transport
from transports.guarantees import Guarantee
from transports.registry import known_schemes, scheme_of, transport_of


def with_transport_defaults(settings: RunSettings, patterns: Iterable[Pattern] = ()) -> RunSettings:
    """Return the settings with the transport's defaults filled in. `patterns` are those of links other than PAIR.

    BadSetting for a setting, or a value of it, that the transport lacks; UserError for an unknown transport.
    """
    transport = _declared(settings.transport)
    scheme = scheme_of(settings.transport)
    transport_values: dict[str, Any] = {}
    for name in TRANSPORT_SETTINGS:
        value = getattr(settings, name)
        option = transport.run_settings.get(name)
        if not option and value is not None:
            raise BadSetting(name, value, f"nothing: {settings.transport} {_why_not(settings, name, value)}")
        words = transport.words(option)
        if words and value is None:
            value = words[0]
        elif words:
            one_of(name, value, words)
        transport_values[name] = value
    if "broker" in settings.nagle and not transport.has_broker(scheme):
        raise BadSetting("nagle", "broker", f"{', '.join(ROLES)}; {settings.transport} has no broker")
    if "broker" in settings.cpus and not transport.has_broker(scheme):
        raise BadSetting("cpus", "broker", f"one of {', '.join(ROLES)}; {settings.transport} has no broker")
    rules = transport.slow_subscriber_rules(options_in(settings.transport))
    if settings.slow_subscriber is None and settings.subscribers and rules:
        transport_values["slow_subscriber"] = next(iter(rules))
    whole = replace(settings, **transport_values)
    patterns_of_market_data = (transport.market_data_pattern,) if settings.subscribers and rules else ()
    _check_url(whole, transport, scheme, (Pattern.PAIR, *patterns, *patterns_of_market_data))
    return whole


def _why_not(settings: RunSettings, name: str, value: Any) -> str:
    """Return why a transport does not take this setting, as the end of a sentence that begins with its URL."""
    transport = _declared(settings.transport)
    option_of_same_name = name
    if value in transport.words(option_of_same_name):
        return f"has it in the URL: {with_option(settings.transport, f'{name}={value}')}"
    if transport.has_broker(scheme_of(settings.transport)):
        return "has no such option"
    return "has no broker"


def _check_url(settings: RunSettings, transport: Transport, scheme: str, patterns: Iterable[Pattern]) -> None:
    """UserError for a mistake in the options of the transport's URL, before anything is started."""
    base, _, query = settings.transport.partition("?")
    given = Counter(name for name, _ in parse_qsl(query, keep_blank_values=True))
    if not given:
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


Fits = Callable[[Transport, str], bool]
"""A function that returns whether a transport, with one of its schemes, has a feature."""


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


def runs_in_one_process(transport: str) -> bool:
    """True if the transport cannot leave a process."""
    return not has_processes(_declared(transport), scheme_of(transport))


def check_warm_up(settings: RunSettings) -> None:
    """UserError if the warm-up, rounded up to whole seconds, is as long as the run: nothing would be analysed."""
    length_s = settings.length_s
    if length_s is None or not settings.warm_up_s:
        return
    if math.ceil(settings.warm_up_s) >= length_s:
        raise UserError(f"--warm-up {settings.warm_up_s:g} leaves nothing of a run of {length_s:g} s to analyse")


DESCRIPTORS_OF_PEER = 16
"""The most files that a gateway or an engine takes in another process: a link at a peer, or pipes at the launcher."""
DESCRIPTORS_OF_SUBSCRIBER = 6
"""The most files that a subscriber takes in another process: connections of a link, or pipes at the launcher."""
OTHER_DESCRIPTORS = 64


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


def check_transport(settings: RunSettings) -> None:
    """UserError if the transport lacks a feature of the settings, or is open to other hosts without --insecure.

    Call this once for a run, before anything is started. With --insecure, an open address gets a warning.
    """
    check_descriptors(settings)
    transport = _declared(settings.transport)
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
    declared = [_declared(transport) for transport in transports]
    names = []
    for name in TRANSPORT_SETTINGS:
        if settings.get(name) and not any(name in transport.run_settings for transport in declared):
            names.append(name)
    return names


def _has_setting(name: str, transport: Transport, _scheme: str) -> bool:
    return name in transport.run_settings


def schemes_that_fit(fits: Fits) -> str:
    """Return the schemes of all transports that fit, in words. For example: amqp, tcp or zeromq"""
    *others, last = known_schemes(fits)
    return f"{', '.join(others)} or {last}" if others else last


def _check_keys(folder: str) -> None:
    from transports.keys import Keys

    with users_mistake(TransportError):
        Keys.checked(Path(folder))


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


def _declared(asked: str) -> Transport:
    """Return the transport of a scheme or URL. UserError if there is none, or if its client library is missing."""
    scheme = scheme_of(asked)
    with users_mistake(TransportError):
        transport = transport_of(scheme)
        transport.check_installed(scheme)
    return transport


def check_server(asked: str) -> None:
    """UserError if a transport needs a server that this host would start, and that is not installed here."""
    transport = _declared(asked)
    scheme = scheme_of(asked)
    has_place = "://" in asked
    if has_place or transport.broker is None:
        return
    broker = transport.broker()
    if scheme in broker.starts:
        with users_mistake(TransportError):
            broker.installed()


def defaults_of(transport: str) -> dict[str, str]:
    """Return the transport's own settings, each with its default; empty if the transport is not known."""
    try:
        declared = transport_of(scheme_of(transport))
    except TransportError:
        return {}
    return {name: declared.words(option)[0] for name, option in declared.run_settings.items()}


def split_query(query: str, names: Container[str]) -> tuple[str, dict[str, str]]:
    """Return a URL's query without the options of these names, and those options with their values."""
    others: list[str] = []
    named: dict[str, str] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name in names:
            named[name] = unquote(value)
        elif part:
            others.append(part)
    return "&".join(others), named


def split_run_settings(url: str) -> tuple[str, dict[str, Any]]:
    """Return a transport's URL without the options that are settings of a run, and these settings.

    For example: ("amqp?queue=quorum", {"delivery": "durable"}) for amqp?queue=quorum&delivery=durable
    """
    place, _, query = url.partition("?")
    option_of_setting = _declared(url).run_settings
    others, options = split_query(query, set(option_of_setting.values()))
    settings = {name: options[option] for name, option in option_of_setting.items() if option in options}
    return with_option(place, others), settings


def options_in(url: str) -> dict[str, str]:
    """Return the options in the query of a transport's URL."""
    return dict(parse_qsl(url.partition("?")[2], keep_blank_values=True))


def guarantee_of(transport: str, settings: Mapping[str, Any]) -> Guarantee | None:
    """Return the guarantee of a transport with its options and these settings; None if there is no declared one."""
    options = options_in(transport)
    try:
        declared = transport_of(scheme_of(transport))
    except TransportError:
        return None
    for name, option in declared.run_settings.items():
        value = settings.get(name)
        if value is not None:
            options[option] = value
    return declared.guarantee(options)


def settings_of_url(url: str) -> dict[str, Any]:
    """Return the settings that a component's URL carries. An unknown transport has no settings of its own."""
    options = options_in(url)
    try:
        option_of_setting = transport_of(scheme_of(url)).run_settings
    except TransportError:
        option_of_setting = {}
    given_values = {name: options.get(option) for name, option in option_of_setting.items()}
    return {"transport": mask(url), "topology": options.get("topology", "duplex"), **given_values}


def url_options_of(settings: RunSettings) -> str:
    """Return the query of the URL that every component gets: the transport's own settings, and the keys."""
    option_of_setting = transport_of(scheme_of(settings.transport)).run_settings
    options = [f"{option}={getattr(settings, name)}" for name, option in option_of_setting.items()]
    if settings.secure:
        options.append(_keys_option(settings.secure))
    return "&".join(options)


def with_keys(url: str, secure: str | None) -> str:
    """Return the URL with the folder of keys as an option, unless there is no folder or the URL has it already."""
    if not secure:
        return url
    _, _, query = url.partition("?")
    option = _keys_option(secure)
    if option in query.split("&"):
        return url
    return with_option(url, option)


def keys_folder_of(settings: RunSettings) -> str | None:
    """Return the folder of keys that --secure or the transport's URL names; None without keys."""
    return settings.secure or options_in(settings.transport).get("keys")


END_OF_OPTION = r"(?![^&#\s])"
"""The pattern of the place where an option of a URL ends: nothing, or a character that no value of an option has."""


def with_other_keys(url: str, keys: str, other: str) -> str:
    """Return the URL, or any text with URLs, with another folder in place of a folder of keys."""
    quoted_or_as_typed = f"{re.escape(quoted(keys))}|{re.escape(keys)}"
    option_with_keys = rf"\bkeys=({quoted_or_as_typed}){END_OF_OPTION}"
    option_with_other = _keys_option(other)
    return re.sub(option_with_keys, lambda _: option_with_other, url)


def _keys_option(folder: str) -> str:
    return f"keys={quoted(folder)}"


def check_exposure(url: str, insecure: bool) -> None:
    """UserError if other hosts reach this listener and nothing is encrypted; with `insecure`, a warning instead.

    A malformed address passes here, since the transport refuses it.
    """
    place, _, options = url.partition("://")[2].partition("?")
    host, _, port = place.rpartition(":")
    is_port = _declared(url).places[scheme_of(url)] == "port" and port.isdecimal()
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
    """Return the URL with the option `name=value` added; an empty option adds nothing."""
    if not option:
        return url
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}{option}"
