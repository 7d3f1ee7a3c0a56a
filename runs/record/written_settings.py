"""Run settings as a record or a plan has written them down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from exchange.settings import RunSettings

FOUND_ANEW = {"url"}
"""What a record has beside its settings: where the components met."""


class UnknownSettings(ValueError):
    """Without them, something else would be run."""


def settings_as_written(written: Mapping[str, Any]) -> RunSettings:
    """A setting that came later has its default, which is what was before. UnknownSettings, BadSetting or TypeError."""
    known = {field.name for field in fields(RunSettings)}
    if unknown := sorted(written.keys() - known - FOUND_ANEW):
        raise UnknownSettings(f"this version of exchange has no setting {', '.join(unknown)}")
    return RunSettings(**{name: _from_json(written[name]) for name in known & written.keys()})


def _from_json(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
