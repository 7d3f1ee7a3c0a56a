"""A sweep as a user describes it: what varies, what all runs share, how often; a file's, then what was typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.sweep.keys import Key, key_of
from runs.errors import UserError

Levels = Mapping[str, Any]
"""Values of a setting, by the words in which they were written."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """`vary` and `run` by key, as files and options have it."""

    repeats: int = 10
    pause_s: float = 0.5
    vary: Mapping[str, Levels] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)

    def with_typed(self, vary: Mapping[str, Levels], run: Mapping[str, Any], **numbers: Any) -> Description:
        """What was typed takes the place of what the file says, key by key."""
        kept = {name: levels for name, levels in self.vary.items() if name not in run}
        shared = {name: value for name, value in self.run.items() if name not in vary}
        if "orders" in run or "duration" in run:
            shared = {name: value for name, value in shared.items() if name not in {"orders", "duration"}}
        return replace(self, vary={**kept, **vary}, run={**shared, **run}, **numbers)


def levels_of(key: Key, written: list[object], where: str) -> Levels:
    """UserError where there is none, or one twice."""
    if not written:
        raise UserError(f"{where}: {key.name} has no values: a product with none of them has no runs")
    levels = {str(each): key.value(each, where) for each in written}
    if len(levels) < len(written):
        raise UserError(f"{where}: {key.name} has a value twice: {', '.join(map(str, written))}")
    return levels


def typed_levels(text: str) -> tuple[str, Levels]:
    """Of --vary NAME=VALUE,VALUE."""
    name, equals, values = text.partition("=")
    if not equals:
        raise UserError(f"--vary {text}: give NAME=VALUE,VALUE, as packing=1,10")
    written: list[object] = [value.strip() for value in values.split(",") if value.strip()]
    return name.strip(), levels_of(key_of(name.strip(), "--vary"), written, "--vary")
