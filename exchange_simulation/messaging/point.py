"""What one cell of a benchmark varies besides the transport, as {"size_bytes": 64}; and how a point reads in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exchange.words import counted

SIZE = "size_bytes"
"""A point's key for the bytes of a message."""
BATCH = "batch_bytes"
"""The key in place of SIZE, of the bytes of a frame that several messages are packed into."""
RATE = "rate_per_s"
"""A point's key for its rate; points lack this key with `--rate max` alone, which is the default."""
NETWORK = "network"
"""A point's key for its network, if a benchmark is measured in several; and the setting with these networks."""
LOCAL = "local"
"""The value of `--network` for no network: all roles are on loopback."""
BROKERS = "brokers"
"""A point's key for the number of brokers that share its links, if a benchmark is measured with several."""
MAX = "max"
"""The value of RATE for publishers that send as fast as they can."""

Settings = Mapping[str, Any]
"""Values of the command's options: transport, sizes, count, quick, ..., and the benchmark's own."""
Point = Mapping[str, Any]


def networks_of(settings: Settings) -> list[str]:
    """The networks of `--network`; records before that option took several have one as a text."""
    given = settings.get(NETWORK) or LOCAL
    return [given] if isinstance(given, str) else list(given)


def brokers_of(settings: Settings) -> tuple[int, ...]:
    """The numbers of `--brokers`; 1 for a benchmark without that option."""
    return tuple(settings.get(BROKERS) or (1,))


def with_brokers(make_points: Callable[[Settings], list[Point]]) -> Callable[[Settings], list[Point]]:
    """Return a function that makes each point with each number of `--brokers`; the same points with one broker."""

    def points(settings: Settings) -> list[Point]:
        numbers = brokers_of(settings)
        if numbers == (1,):
            return make_points(settings)
        return [{**point, BROKERS: number} for point in make_points(settings) for number in numbers]

    return points


def in_each_network(points: Sequence[Point], settings: Settings) -> list[Point]:
    """Each point in each network of `--network`; the same points if there is one network."""
    networks = networks_of(settings)
    if len(networks) == 1:
        return list(points)
    return [{**point, NETWORK: network} for point in points for network in networks]


def by_size(settings: Settings) -> list[Point]:
    """A point for each of `--sizes`."""
    return [{"size_bytes": size} for size in settings["sizes"]]


def by_size_and(name: str) -> Callable[[Settings], list[Point]]:
    """Return a function that makes a point for each of `--sizes` with each number of the option `name`."""

    def points(settings: Settings) -> list[Point]:
        points: list[Point] = []
        for point in by_size(settings):
            for number in settings[name]:
                points.append({**point, name: number})
        return points

    return points


def value_in_words(name: str, value: Any) -> str:
    """A point's value with its unit.

    For example: 64 B; 4 pairs; match scan
    """
    if name.endswith("_bytes"):
        return size_in_words(value)
    if name == RATE:
        return _rate_in_words(value)
    if name == NETWORK:
        return f"on {value}"
    return counted(value, name) if isinstance(value, int) else f"{name} {value}"


def _rate_in_words(rate: float | str) -> str:
    """A rate, or a load over time as the user typed it. For example: 2,000/s; 1000@10s,8000@10s"""
    if rate == MAX:
        return "as fast as it goes"
    return rate if isinstance(rate, str) else f"{rate:,}/s"


def size_in_words(size: int) -> str:
    """A size in the largest unit that gives a whole number.

    For example: 1 B, 4 KiB, 1 MiB, but 1,000 B
    """
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size:,} B"
