"""Loads whose rate changes while they go on: steps, ramps and spikes, as a user writes them and as arrivals hold them.

A user writes rates: 1000@10s,8000@10s,1000 or 1000..8000@20s. Arrivals hold shares of the highest rate, so that one
rate scales the whole shape: steps:0.125@10,1@10,0.125@10. Due times follow from this text alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import InvalidOperation
from functools import cached_property

from exchange.quantities import number_of, seconds_of

LONGEST_SHAPE_S = 10**7
MOST_SEGMENTS = 1_000
SHAPE_FORMS = "RATE@TIME,RATE@TIME,... or FROM..TO@TIME, as 1000@10s,8000@10s,1000 or 1000..8000@20s"


@dataclass(frozen=True)
class LoadSegment:
    """A part of a shape, in which the rate is constant, or changes by the same amount every second."""

    first: float
    """The rate, or share of a rate, at the segment's start."""
    last: float
    seconds: float | None = None
    """None: until the run ends. Only the last segment may be open."""

    @property
    def mean(self) -> float:
        return (self.first + self.last) / 2

    def amount_after(self, seconds: float) -> float:
        """Return the amount in the first `seconds` of the segment: the rate summed over time.

        After its end, the segment's last rate goes on.
        """
        if self.seconds is None:
            return self.first * seconds
        inside_s = min(seconds, self.seconds)
        slope = (self.last - self.first) / self.seconds
        return (self.first + slope * inside_s / 2) * inside_s + self.last * (seconds - inside_s)

    def seconds_until(self, amount: float) -> float:
        """Seconds from the segment's start until so much has come; after its end its last rate goes on."""
        if self.seconds is None:
            return amount / self.first
        beyond = amount - self.mean * self.seconds
        if beyond >= 0:
            return self.seconds + beyond / self.last
        slope = (self.last - self.first) / self.seconds
        return 2 * amount / (self.first + math.sqrt(self.first * self.first + 2 * amount * slope))

    @property
    def typed(self) -> str:
        """The segment as a user types it, with the unit of its time. For example: 1000..8000@20s"""
        words = _words(self)
        return words if self.seconds is None else f"{words}s"


@dataclass(frozen=True)
class _PlacedSegment:
    segment: LoadSegment
    start_s: float
    """The length of all segments before it."""
    amount_before: float
    """The amount in all segments before it."""


@dataclass(frozen=True)
class LoadShape:
    """Segments that follow each other."""

    segments: tuple[LoadSegment, ...]

    def __post_init__(self) -> None:
        """ValueError, with the forms that are allowed, for a shape that is not possible."""
        if not 1 <= len(self.segments) <= MOST_SEGMENTS:
            raise ValueError(SHAPE_FORMS)
        for place, segment in enumerate(self.segments, 1):
            is_last = place == len(self.segments)
            has_length = segment.seconds is not None and 0 < segment.seconds <= LONGEST_SHAPE_S
            is_open_end = segment.seconds is None and is_last and segment.first == segment.last
            are_rates_allowed = all(rate > 0 and math.isfinite(rate) for rate in (segment.first, segment.last))
            if not (has_length or is_open_end) or not are_rates_allowed:
                raise ValueError(SHAPE_FORMS)

    @classmethod
    def parse(cls, text: str) -> LoadShape:
        """Read rates, or shares of one, with the length of each segment. ValueError if the text is no shape."""
        return cls(tuple(_segment(part) for part in text.split(",")))

    @classmethod
    def steady(cls, rate: float) -> LoadShape:
        """Return one rate without an end."""
        return cls((LoadSegment(rate, rate),))

    @property
    def highest(self) -> float:
        """The highest rate."""
        return max(max(segment.first, segment.last) for segment in self.segments)

    @property
    def is_open(self) -> bool:
        """True if the last segment lasts until the run ends."""
        return self.segments[-1].seconds is None

    @property
    def is_steady(self) -> bool:
        """True for one rate without an end."""
        return self.is_open and len(self.segments) == 1

    @property
    def length_s(self) -> float:
        """The length of all segments that have one."""
        return sum(segment.seconds or 0.0 for segment in self.segments)

    @property
    def amount(self) -> float:
        """The amount in all segments that have a length."""
        return sum(segment.mean * (segment.seconds or 0.0) for segment in self.segments)

    def amount_after(self, seconds: float) -> float:
        """Return the amount in the first `seconds`; after the end the last rate goes on. Negative before the start."""
        last_begun = self._placed[0]
        for placed in self._placed:
            if placed.start_s <= seconds:
                last_begun = placed
        return last_begun.amount_before + last_begun.segment.amount_after(seconds - last_begun.start_s)

    def seconds_until(self, amount: float) -> float:
        """Seconds until so much has come; after the end the last rate goes on."""
        last_begun = self._placed[0]
        for placed in self._placed:
            if placed.amount_before <= amount:
                last_begun = placed
        return last_begun.start_s + last_begun.segment.seconds_until(amount - last_begun.amount_before)

    @cached_property
    def _placed(self) -> list[_PlacedSegment]:
        """The segments, each with its place in the shape."""
        placed = []
        start_s = 0.0
        amount_before = 0.0
        for segment in self.segments:
            placed.append(_PlacedSegment(segment, start_s, amount_before))
            length_s = segment.seconds or 0.0
            start_s += length_s
            amount_before += segment.mean * length_s
        return placed

    @property
    def starts_s(self) -> tuple[float, ...]:
        """Seconds from the start of the shape to the begin of each segment."""
        return tuple(placed.start_s for placed in self._placed)

    @property
    def amounts_before(self) -> tuple[float, ...]:
        """The amount before each segment; for a load, the number of messages that are due before the segment begins."""
        return tuple(placed.amount_before for placed in self._placed)

    def lasting(self, seconds: float) -> LoadShape:
        """Return the shape over exactly this time: the end is cut off, or the last rate goes on."""
        left_s = seconds
        segments = []
        for segment in self.segments:
            length_s = left_s if segment.seconds is None else min(segment.seconds, left_s)
            if length_s <= 0:
                break
            whole_s = segment.seconds or length_s
            last = segment.first + (segment.last - segment.first) * (length_s / whole_s)
            segments.append(LoadSegment(segment.first, last, length_s))
            left_s -= length_s
        if left_s > 0:
            segments.append(LoadSegment(segments[-1].last, segments[-1].last, left_s))
        return LoadShape(tuple(segments))

    def in_shares(self) -> LoadShape:
        """Return the shape in shares of its highest rate."""
        highest = self.highest
        segments = [
            replace(segment, first=segment.first / highest, last=segment.last / highest) for segment in self.segments
        ]
        return LoadShape(tuple(segments))

    def scaled(self, factor: float) -> LoadShape:
        """Return the shape with all rates times `factor`, to nine digits: shares become the rates that were typed."""
        segments = []
        for segment in self.segments:
            first = _to_nine_digits(segment.first * factor)
            last = _to_nine_digits(segment.last * factor)
            segments.append(LoadSegment(first, last, segment.seconds))
        return LoadShape(tuple(segments))

    @property
    def text(self) -> str:
        """The shape as `parse` reads it."""
        return ",".join(_words(segment) for segment in self.segments)

    @property
    def typed(self) -> str:
        """The shape as a user types it, with units of times; `parse` reads it too."""
        return ",".join(segment.typed for segment in self.segments)


def is_shape(text: str) -> bool:
    """Return True if the text means to be a shape, and not one rate."""
    return "@" in text or ".." in text


def _segment(part: str) -> LoadSegment:
    rates, at, length = part.strip().partition("@")
    first, dots, last = rates.partition("..")
    try:
        first_rate = float(number_of(first))
        last_rate = float(number_of(last)) if dots else first_rate
        seconds = seconds_of(length) if at else None
    except InvalidOperation as error:
        raise ValueError(SHAPE_FORMS) from error
    return LoadSegment(first_rate, last_rate, seconds)


def _words(segment: LoadSegment) -> str:
    """Return a segment as a user writes it. Numbers have all their digits, so that reading them back loses nothing."""
    rates = _number(segment.first)
    if segment.last != segment.first:
        rates += f"..{_number(segment.last)}"
    return rates if segment.seconds is None else f"{rates}@{_number(segment.seconds)}"


def _to_nine_digits(value: float) -> float:
    return float(f"{value:.9g}")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
