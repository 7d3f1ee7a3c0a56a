"""Fills in the settings of a run that its transport declares, each with its default."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from exchange.allowed import BadSetting, one_of
from exchange.settings import ROLES, TRANSPORT_SETTINGS, RunSettings
from exchange_simulation.launching.transport_checks import check_url
from exchange_simulation.launching.transport_urls import declared_transport, options_in, with_option
from transports.base import Pattern, TransportError
from transports.declaration import Transport
from transports.registry import scheme_of, transport_of


def with_transport_defaults(settings: RunSettings, patterns: Iterable[Pattern] = ()) -> RunSettings:
    """Return the settings with the transport's defaults filled in. `patterns` are those of links other than PAIR.

    BadSetting for a setting, or a value of it, that the transport lacks; UserError for an unknown transport.
    """
    transport = declared_transport(settings.transport)
    scheme = scheme_of(settings.transport)
    transport_values: dict[str, Any] = {name: _value_of(name, settings, transport) for name in TRANSPORT_SETTINGS}
    if "broker" in settings.nagle and not transport.has_broker(scheme):
        raise BadSetting("nagle", "broker", f"{', '.join(ROLES)}; {settings.transport} has no broker")
    if "broker" in settings.cpus and not transport.has_broker(scheme):
        raise BadSetting("cpus", "broker", f"one of {', '.join(ROLES)}; {settings.transport} has no broker")
    rules = transport.slow_subscriber_rules(options_in(settings.transport))
    if settings.slow_subscriber is None and settings.subscribers and rules:
        transport_values["slow_subscriber"] = next(iter(rules))
    whole = replace(settings, **transport_values)
    patterns_of_market_data = (transport.market_data_pattern,) if settings.subscribers and rules else ()
    check_url(whole, transport, scheme, (Pattern.PAIR, *patterns, *patterns_of_market_data))
    return whole


def _value_of(name: str, settings: RunSettings, transport: Transport) -> str | None:
    """Return a setting's value, or its default in the transport; None if the transport does not have the setting."""
    value: str | None = getattr(settings, name)
    option = transport.run_settings.get(name)
    if option is None:
        if value is not None:
            raise BadSetting(name, value, f"nothing: {settings.transport} {_why_not(settings, name, value)}")
        return None
    allowed = transport.words(option)
    if value is None:
        return allowed[0]
    one_of(name, value, allowed)
    return value


def _why_not(settings: RunSettings, name: str, value: Any) -> str:
    """Return why a transport does not take this setting, as the end of a sentence that begins with its URL."""
    transport = declared_transport(settings.transport)
    option_of_same_name = name
    if value in transport.words(option_of_same_name):
        return f"has it in the URL: {with_option(settings.transport, f'{name}={value}')}"
    if transport.has_broker(scheme_of(settings.transport)):
        return "has no such option"
    return "has no broker"


def defaults_of(transport: str) -> dict[str, str]:
    """Return the transport's own settings, each with its default; empty if the transport is not known."""
    try:
        declared = transport_of(scheme_of(transport))
    except TransportError:
        return {}
    return {name: declared.words(option)[0] for name, option in declared.run_settings.items()}
