"""Loads whose rate changes while they go on: steps, ramps and spikes, as a user writes them and as arrivals hold them.

A user writes rates: 1000@10s,8000@10s,1000 or 1000..8000@20s. Arrivals hold shares of the highest rate, so that one
rate scales the whole shape: steps:0.125@10,1@10,0.125@10. Due times follow from this text alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import InvalidOperation

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
            if not (has_length or is_open_end) or segment.first <= 0 or segment.last <= 0:
                raise ValueError(SHAPE_FORMS)

    @classmethod
    def parse(cls, text: str) -> LoadShape:
        """Read rates, or shares of one, with the length of each segment. ValueError if the text is no shape."""
        return cls(tuple(_segment(part) for part in text.split(",")))

    @property
    def highest(self) -> float:
        """The highest rate."""
        return max(max(segment.first, segment.last) for segment in self.segments)

    @property
    def is_open(self) -> bool:
        """True if the last segment lasts until the run ends."""
        return self.segments[-1].seconds is None

    @property
    def length_s(self) -> float:
        """The length of all segments that have one."""
        return sum(segment.seconds or 0.0 for segment in self.segments)

    @property
    def mean_share(self) -> float:
        """The mean over time of a shape without an open end."""
        weighted = sum(segment.mean * (segment.seconds or 0.0) for segment in self.segments)
        return weighted / self.length_s

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

    @property
    def text(self) -> str:
        """The shape as `parse` reads it."""
        return ",".join(_words(segment) for segment in self.segments)


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


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
