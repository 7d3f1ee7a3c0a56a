"""A cell is a point over a transport; the number of its messages follows from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exchange.load_shape import LoadShape
from exchange_simulation.messaging.message_load import MessageLoad
from exchange_simulation.messaging.point import (
    BATCH,
    BROKERS,
    LOCAL,
    MAX,
    NETWORK,
    RATE,
    SIZE,
    Point,
    Settings,
    networks_of,
    value_in_words,
)
from exchange_simulation.messaging.roles import RoleResult
from transports.registry import has_broker

SECONDS_AT_A_RATE = 5.0
"""Seconds for which messages are offered at a rate."""
QUICK_SECONDS_AT_A_RATE = 1.0
"""The same with `--quick`."""
LEAST_MESSAGES_AT_A_RATE = 100
"""At a low rate, offering this many messages takes longer than SECONDS_AT_A_RATE."""
LEAST_TIMED_MESSAGES = 2
"""The smallest number of messages between which there is a time."""
LEAST_MESSAGES = 64
"""The smallest default number of messages of a cell without a rate."""
QUICK_DIVISOR = 10
"""A quick run divides the default number of messages by this."""
FLOOD_S = 0.5
"""The usual duration of a cell that sends its messages as fast as it can, of which the messages take half."""
FLOOD_ON_NETWORK_S = 2.0
"""The same on an emulated network, which the larger messages fill."""

Figures = dict[str, float]
Results = Mapping[str, RoleResult]
"""Results of a cell's roles, by the role's name."""


@dataclass(frozen=True)
class Counts:
    """The largest default numbers of messages of a benchmark, and of bytes."""

    broker: int = 100_000
    """Messages over a broker."""
    brokerless: int = 2_000_000
    total_bytes: int = 1 << 28
    """Bytes of all messages together: a cell of larger messages has fewer of them."""

    def default_count(self, size: int, has_broker: bool, quick: bool) -> int:
        """The default number of messages of `size` bytes: LEAST_MESSAGES or more."""
        by_transport = self.broker if has_broker else self.brokerless
        count = min(by_transport, self.total_bytes // size)
        if quick:
            count //= QUICK_DIVISOR
        return max(LEAST_MESSAGES, count)

    def flood_s(self, cell: Cell, streams: int = 1) -> float:
        """About how long a cell takes that sends its messages as fast as it can, on each of so many streams.

        More messages than by default take longer, as those of several streams do.
        """
        usual_s = FLOOD_S if cell.network == LOCAL else FLOOD_ON_NETWORK_S
        default_count = self.default_count(cell.size, cell.has_broker, quick=False)
        return usual_s * max(1.0, streams * cell.count(self) / default_count / 2)


@dataclass(frozen=True)
class Cell:
    transport: str
    point: Point
    settings: Settings
    times_longer: int = 1
    """Multiplies the default number of messages, or the sample; more than 1 once a measurement was too short."""

    @property
    def size(self) -> int:
        """Bytes of a message; of a frame, if the benchmark packs messages into frames."""
        return int(self.point[SIZE] if SIZE in self.point else self.point[BATCH])

    @property
    def has_broker(self) -> bool:
        return has_broker(self.transport)

    @property
    def network(self) -> str:
        """The network between the roles."""
        return str(self.point[NETWORK]) if NETWORK in self.point else networks_of(self.settings)[0]

    @property
    def brokers(self) -> int:
        """The number of brokers that share the links."""
        return int(self.point.get(BROKERS, 1))

    @property
    def load(self) -> MessageLoad | None:
        """The load that each publisher is offered; None if a publisher sends as fast as it can."""
        rate = self.point.get(RATE, MAX)
        if rate == MAX:
            return None
        user_count: int | None = self.settings.get("count")
        if isinstance(rate, str):
            return MessageLoad.over_time(LoadShape.parse(rate), user_count)
        return MessageLoad.steady(float(rate), user_count or messages_at(float(rate), self.settings))

    @property
    def has_load_over_time(self) -> bool:
        """Whether each publisher is offered a load with an end, rather than one rate or as much as goes."""
        load = self.load
        return load is not None and not load.shape.is_open

    @property
    def sample_s(self) -> float:
        """Seconds for which replies are counted: the length of a load over time, else that of `--sample`."""
        load = self.load
        if load is not None and self.has_load_over_time:
            return load.length_s
        return float(self.settings["sample_s"]) * self.times_longer

    def count(self, counts: Counts, size: int | None = None) -> int:
        """Number of messages: those of the load; else the user's `--count`; else the default for size and transport.

        `size`: bytes of a message, if they are not those of the point.
        """
        load = self.load
        if load is not None:
            return load.messages
        user_count: int | None = self.settings.get("count")
        if user_count:
            return user_count
        quick = bool(self.settings.get("quick"))
        return self.times_longer * counts.default_count(size or self.size, self.has_broker, quick)

    def __str__(self) -> str:
        """The transport and the point in words.

        For example: amqp, 64 B, 4 pairs
        """
        return ", ".join([self.transport, *(value_in_words(name, value) for name, value in self.point.items())])


def messages_at(rate_per_s: float, settings: Settings) -> int:
    """How many messages are offered at one rate: those of the user's `--seconds`, else of the default.

    At a low rate the default takes longer, for LEAST_MESSAGES_AT_A_RATE.
    """
    user_seconds: float | None = settings.get("seconds")
    if user_seconds is not None:
        return max(LEAST_TIMED_MESSAGES, round(rate_per_s * user_seconds))
    seconds = QUICK_SECONDS_AT_A_RATE if settings.get("quick") else SECONDS_AT_A_RATE
    return max(LEAST_MESSAGES_AT_A_RATE, round(rate_per_s * seconds))


def least_duration_s(cell: Cell) -> float:
    """The shortest time that a cell takes, by its settings: its messages at their rate, or its warm-up and its sample.

    0 for a cell that sends its messages as fast as it can, since its duration is not known before.
    """
    if "sample_s" in cell.settings:
        return float(cell.settings["warm_up_s"]) + cell.sample_s
    load = cell.load
    if load is not None:
        return load.length_s
    return sum(cell.settings.get(name) or 0.0 for name in ("warm_up_s", "sample_s", "duration_s"))
