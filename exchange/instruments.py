"""The instruments of a run: numbers from 0 on. An order without an instrument on the wire is of instrument 0."""

from __future__ import annotations

from exchange.allowed import BadSetting, whole

MAX_INSTRUMENTS = 10_000
"""The most instruments of a run."""
LARGEST_MARKET = 1 << 28
"""The most price levels of all instruments together: 2 GB of memory, if orders rest in all of them."""


def check_instruments(instruments: int, max_price: int) -> None:
    """Raise BadSetting if there are too many instruments, or too many for books of this many prices."""
    whole("instruments", instruments, 1, MAX_INSTRUMENTS)
    most = LARGEST_MARKET // (2 * max_price)
    if instruments > most:
        raise BadSetting("instruments", instruments, f"at most {most} where the highest price is {max_price}")


def engine_of(instrument: int, engines: int) -> int:
    """Return the engine, counted from 1, that serves an instrument: neighbours are served by different engines."""
    return 1 + instrument % engines
