"""Profiles of networks: rate and delay of the links. For example: `wan10`, or `gige?delay_us=80&rate_mbit=500`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from exchange.allowed import meant
from exchange_simulation.launching.errors import UserError

MBIT = 1_000_000
LARGEST_FRAME = 1514
"""Bytes of an MTU of 1500 and the Ethernet header (IEEE 802.3)."""
SMALLEST_FRAME = 60
"""Bytes to which shorter frames are padded."""
FRAMING = 24
"""Bytes on the cable in addition to a frame: preamble 8, checksum 4, gap 12."""


@dataclass(frozen=True)
class Profile:
    """The profile of a network."""

    name: str
    rate_bit_per_s: int | None = None
    """The rate of each link in each direction; None does not limit the rate."""
    delay_us: float | None = None
    """The one-way delay; None adds no delay."""

    @property
    def is_local(self) -> bool:
        return self.name == "local"

    @property
    def is_shaped(self) -> bool:
        return self.rate_bit_per_s is not None

    @property
    def round_trip_us(self) -> float:
        """The expected time of a round trip: twice the delay, and twice the time of the smallest frame on the link."""
        assert self.rate_bit_per_s is not None
        assert self.delay_us is not None
        return 2 * (self.delay_us + (SMALLEST_FRAME + FRAMING) * 8e6 / self.rate_bit_per_s)


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


def parse(text: str) -> Profile:
    """Return the profile that a user typed; its name is the text. UserError names the wrong part and allowed values."""
    name, question_mark, options = text.partition("?")
    if name not in PROFILES:
        raise UserError(f"no network is called {name!r}; there are {', '.join(PROFILES)}{meant(name, PROFILES)}")
    profile = PROFILES[name]
    if question_mark and not profile.is_shaped:
        shaped = [other.name for other in PROFILES.values() if other.is_shaped]
        raise UserError(f"{text}: {name} has neither rate nor delay to set; {', '.join(shaped)} have")
    for field, value in parse_qsl(options, keep_blank_values=True):
        profile = _with_option(profile, text, field, value)
    return replace(profile, name=text)


def _with_option(profile: Profile, text: str, field: str, value: str) -> Profile:
    """Return the profile with a field set. UserError names the field; `text` is the whole profile as it was typed."""
    if field not in LIMITS:
        raise UserError(f"{text}: {field!r} is no setting of a network; {', '.join(LIMITS)} are{meant(field, LIMITS)}")
    low, high = LIMITS[field]
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise UserError(f"{text}: {field} is {value!r}; allowed is {low:g} to {high:,.0f}")
    if field == "delay_us":
        return replace(profile, delay_us=number)
    return replace(profile, rate_bit_per_s=round(number * MBIT))
