"""Times and durations as text."""

from __future__ import annotations

from datetime import datetime

from exchange_simulation.reports.formats.numbers import three_digits


def time_in_words(us: float) -> str:
    """Return microseconds in the unit that suits them. For example: 949 µs, 12.8 ms, 46.2 s"""
    if us >= 1e7:
        return f"{three_digits(us / 1e6)} s"
    if us >= 1e4:
        return f"{three_digits(us / 1e3)} ms"
    return f"{three_digits(us)} µs"


def duration_in_words(seconds: float) -> str:
    """Return seconds in the two units that suit them. For example: 6 s, 3 min 20 s, 2 h 5 min"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def date_and_time(iso_time: str) -> str:
    """Return a time in words; a text that is no time stays as it is. For example: 21 November 2026, 18:22 UTC"""
    try:
        time = datetime.fromisoformat(iso_time)
    except ValueError:
        return iso_time
    return f"{time.day} {time:%B %Y, %H:%M} {time.tzname() or ''}".strip()
