"""What a network is to be like: `wan10`, or `gige?delay_us=80&rate_mbit=500`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from runs.errors import UserError

MBIT = 1_000_000


@dataclass(frozen=True)
class Profile:
    """`rate_bit_per_s` of each link in each direction; `delay_us` one way; None: nothing is done about it."""

    name: str
    rate_bit_per_s: int | None = None
    delay_us: float | None = None

    @property
    def is_local(self) -> bool:
        return self.name == "local"

    @property
    def is_shaped(self) -> bool:
        return self.rate_bit_per_s is not None


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("local"),
        Profile("veth"),
        Profile("gige", 1000 * MBIT, 50.0),
        Profile("wan1", 1000 * MBIT, 1_000.0),
        Profile("wan10", 1000 * MBIT, 10_000.0),
    )
}
LIMITS = {"delay_us": (1.0, 100_000.0), "rate_mbit": (1.0, 10_000.0)}
_CHANGE: dict[str, Callable[[Profile, float], Profile]] = {
    "delay_us": lambda profile, value: replace(profile, delay_us=value),
    "rate_mbit": lambda profile, value: replace(profile, rate_bit_per_s=round(value * MBIT)),
}


def parse(text: str) -> Profile:
    """UserError says which part is wrong, and what is allowed. The profile is called what the user called it."""
    name, question_mark, options = text.partition("?")
    if name not in PROFILES:
        raise UserError(f"no network is called {name!r}; there are {', '.join(PROFILES)}")
    profile = PROFILES[name]
    if question_mark and not profile.is_shaped:
        shaped = [other.name for other in PROFILES.values() if other.is_shaped]
        raise UserError(f"{text}: {name} has neither rate nor delay to set; {', '.join(shaped)} have")
    for field, value in parse_qsl(options, keep_blank_values=True):
        profile = _with(profile, text, field, value)
    return replace(profile, name=text)


def _with(profile: Profile, text: str, field: str, value: str) -> Profile:
    if field not in LIMITS:
        raise UserError(f"{text}: {field!r} is no setting of a network; {', '.join(LIMITS)} are")
    low, high = LIMITS[field]
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise UserError(f"{text}: {field} is {value!r}; allowed is {low:g} to {high:,.0f}")
    return _CHANGE[field](profile, number)
