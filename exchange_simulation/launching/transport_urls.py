"""The texts of transports' URLs: the options in them, the settings that they carry, and the folder of keys."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from exchange.settings import RunSettings
from exchange_simulation.launching.errors import users_mistake
from transports.base import TransportError, mask, quoted
from transports.declaration import Transport
from transports.guarantees import Guarantee
from transports.registry import scheme_of, transport_of


def declared_transport(asked: str) -> Transport:
    """Return the transport of a scheme or URL. UserError if there is none, or if its client library is missing."""
    scheme = scheme_of(asked)
    with users_mistake(TransportError):
        transport = transport_of(scheme)
        transport.check_installed(scheme)
    return transport


def options_in(url: str) -> dict[str, str]:
    """Return the options in the query of a transport's URL."""
    return dict(parse_qsl(url.partition("?")[2], keep_blank_values=True))


def with_option(url: str, option: str) -> str:
    """Return the URL with the option `name=value` added; an empty option adds nothing."""
    if not option:
        return url
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}{option}"


def split_query(query: str, names: Container[str]) -> tuple[str, dict[str, str]]:
    """Return a URL's query without the options of these names, and those options with their values."""
    others: list[str] = []
    named: dict[str, str] = {}
    for option in query.split("&"):
        name, _, value = option.partition("=")
        if name in names:
            named[name] = unquote(value)
        elif option:
            others.append(option)
    return "&".join(others), named


def split_run_settings(url: str) -> tuple[str, dict[str, Any]]:
    """Return a transport's URL without the options that are settings of a run, and these settings.

    For example: ("amqp?queue=quorum", {"delivery": "durable"}) for amqp?queue=quorum&delivery=durable
    """
    place, _, query = url.partition("?")
    option_of_setting = declared_transport(url).run_settings
    others, options = split_query(query, set(option_of_setting.values()))
    settings = {name: options[option] for name, option in option_of_setting.items() if option in options}
    return with_option(place, others), settings


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


def keys_folder_of(settings: RunSettings) -> str | None:
    """Return the folder of keys that --secure or the transport's URL names; None without keys."""
    return settings.secure or options_in(settings.transport).get("keys")


def with_keys(url: str, secure: str | None) -> str:
    """Return the URL with the folder of keys as an option, unless there is no folder or the URL has it already."""
    if not secure:
        return url
    _, _, query = url.partition("?")
    option = _keys_option(secure)
    if option in query.split("&"):
        return url
    return with_option(url, option)


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
