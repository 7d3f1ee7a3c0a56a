"""The rows of a comparison's JSON and CSV: a row for each arm."""

from __future__ import annotations

import orjson

from exchange.json_records import Record
from exchange_simulation.launching.files import json_bytes


def arm_rows(comparison: Record) -> list[Record]:
    """Return a row for each arm: its name, the settings in which arms differ, every metric, null where unmeasured."""
    settings_by_arm = [orjson.loads(json_bytes(arm["settings"])) for arm in comparison["arms"]]
    varying = _varying_settings(settings_by_arm)
    rows: list[Record] = []
    for arm, settings in zip(comparison["arms"], settings_by_arm, strict=True):
        rows.append(
            {
                "contender": arm["contender"],
                "block": arm["block"],
                "settings": {name: settings.get(name) for name in varying},
                "runs": len(arm["runs"]),
                "saturated": arm["saturated"],
                "held": arm["held"],
                "metrics": {name: _median_and_interval(arm["metrics"].get(name, {})) for name in comparison["metrics"]},
            }
        )
    return rows


def _varying_settings(settings_by_arm: list[Record]) -> list[str]:
    """Return the names of the settings whose value differs between arms."""
    first = settings_by_arm[0]
    return [name for name in first if any(settings.get(name) != first[name] for settings in settings_by_arm)]


def _median_and_interval(estimate: Record) -> Record:
    """Return an estimate's median and interval; every value is None if it was not measured."""
    return {"median": estimate.get("median"), "low": estimate.get("low"), "high": estimate.get("high")}
