"""Run settings as a record or a plan has written them down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from exchange.settings import RunSettings

FOUND_ANEW = {"url"}
"""Fields beside the settings in a record: where the components met."""


class UnknownSettings(ValueError):
    """A record holds settings that this version does not have."""


def settings_as_written(written: Mapping[str, Any]) -> RunSettings:
    """Settings from a record; one that came later has its default. UnknownSettings, BadSetting or TypeError."""
    known = {field.name for field in fields(RunSettings)}
    if unknown := sorted(written.keys() - known - FOUND_ANEW):
        raise UnknownSettings(f"this version of exchange has no setting {', '.join(unknown)}")
    return RunSettings(**{name: _from_json(written[name]) for name in known & written.keys()})


def _from_json(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
