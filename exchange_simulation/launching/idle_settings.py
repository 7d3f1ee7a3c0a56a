"""Settings of a run that would change nothing: each is refused with a sentence, so that nobody waits for its effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import click

from exchange.settings import DECLARED, RunSettings


@dataclass(frozen=True, kw_only=True)
class SettingNeed:
    """A condition without which a setting changes nothing in a run."""

    field: str
    is_met: Callable[[RunSettings], bool]
    words: str
    """The sentence after the option's name."""


def _waits_for_due_times(settings: RunSettings) -> bool:
    return settings.orders_per_s is not None


def _has_subscribers(settings: RunSettings) -> bool:
    return settings.subscribers > 0


NEEDS = (
    SettingNeed(
        field="pace",
        is_met=_waits_for_due_times,
        words="is how the gateway waits for a due time, and at --rate max no order is due: leave it out",
    ),
    SettingNeed(
        field="depth",
        is_met=_has_subscribers,
        words="is for market data: give --subscribers too",
    ),
    SettingNeed(
        field="slow_subscriber",
        is_met=_has_subscribers,
        words="is for market data: give --subscribers too",
    ),
)


def refuse_idle_settings(given: Collection[str], runs: Sequence[RunSettings]) -> None:
    """UsageError for a setting that the user gave, and that changes nothing in any of these runs.

    `given` are the fields of the settings that the user typed, or passed from Python.
    """
    for need in NEEDS:
        if need.field in given and not any(need.is_met(settings) for settings in runs):
            raise click.UsageError(f"{DECLARED[need.field].option} {need.words}")
