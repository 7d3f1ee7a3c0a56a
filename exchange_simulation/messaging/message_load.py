"""The load that a publisher is offered: how many messages, and when each falls due. One rate, or rates over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from exchange.load_shape import LoadSegment, LoadShape

if TYPE_CHECKING:  # the module loads kernels
    from gateway.due_times import DueTimes

IGNORED_LAST_MESSAGES = 100
"""The growth of the backlog is computed without this many last messages of a stream: Nagle may hold them for 40 ms."""


@dataclass(frozen=True)
class MessageLoad:
    """The messages of one publisher. A message that is late moves no due time."""

    shape: LoadShape
    """Messages a second over time."""
    messages: int
    """How many messages are offered."""

    @classmethod
    def steady(cls, rate_per_s: float, messages: int) -> MessageLoad:
        """This many messages at one rate."""
        return cls(LoadShape.steady(rate_per_s), messages)

    @classmethod
    def over_time(cls, shape: LoadShape, most_messages: int | None = None) -> MessageLoad:
        """The messages of a shape whose segments all have a length; at most this many, if a number is given."""
        messages = max(1, round(shape.amount))
        if most_messages is None or most_messages >= messages:
            return cls(shape, messages)
        return cls(shape.lasting(round(shape.seconds_until(most_messages), 9)), most_messages)

    @property
    def highest_per_s(self) -> float:
        return self.shape.highest

    @property
    def length_s(self) -> float:
        """Seconds in which all messages fall due."""
        return self.shape.seconds_until(self.messages)

    def after(self, warm_up_s: float) -> MessageLoad:
        """The load with its first rate before it, as a step more. Nothing goes before one rate."""
        if self.shape.is_open:
            return self
        first = self.shape.segments[0].first
        shape = LoadShape((LoadSegment(first, first, warm_up_s), *self.shape.segments))
        return MessageLoad.over_time(shape)

    def due_times(self) -> DueTimes:
        """Generates due times as those of a run's orders."""
        from gateway.due_times import Periodic, Shaped

        period_ns = 1e9 / self.highest_per_s
        if self.shape.is_steady:
            return Periodic(period_ns)
        return Shaped(period_ns, self.shape.in_shares())

    def due_between(self, begin_s: float, end_s: float) -> float:
        """How many messages fall due between two times since the load's start, if its last rate went on for ever."""
        return self.shape.amount_after(end_s) - self.shape.amount_after(begin_s)

    @cached_property
    def steps(self) -> list[LoadStep]:
        """The segments of a load over time, with the numbers of their messages; empty for one rate."""
        if len(self.shape.segments) < 2:
            return []
        firsts = [min(math.ceil(round(amount, 6)), self.messages) for amount in self.shape.amounts_before]
        ends = [*firsts[1:], self.messages]
        ranges = [MessageRange(first, end) for first, end in zip(firsts, ends, strict=True)]
        return [LoadStep(segment, messages) for segment, messages in zip(self.shape.segments, ranges, strict=True)]

    @property
    def step_starts_s(self) -> tuple[float, ...]:
        """Seconds from the load's start to the begin of each step but the first."""
        return self.shape.starts_s[1:]

    @property
    def step_bounds(self) -> tuple[int, ...]:
        """The number, from 0, of the first message of each step but the first."""
        return tuple(step.messages.first for step in self.steps[1:])

    @property
    def bounds(self) -> tuple[int, ...]:
        """The numbers at which a step of the load or a window of its last quarter begins or ends, without 0."""
        numbers = set(self.step_bounds)
        for window in self.quarter_windows:
            numbers |= {window.first, window.end}
        return tuple(sorted(numbers - {0}))

    @property
    def quarter_windows(self) -> tuple[MessageRange, MessageRange]:
        """The first and the last messages of the last quarter; the growth of a backlog is seen by their delays."""
        begin = 3 * self.messages // 4
        end = self.messages - min(IGNORED_LAST_MESSAGES, self.messages // 8)
        width = max(1, (end - begin) // 4)
        return MessageRange(begin, begin + width), MessageRange(end - width, end)

    def rate_in(self, messages: MessageRange) -> float:
        """The mean rate at which these messages fall due."""
        length_s = self.shape.seconds_until(messages.end) - self.shape.seconds_until(messages.first)
        return (messages.end - messages.first) / length_s


@dataclass(frozen=True)
class MessageRange:
    """Messages by their numbers, from 0."""

    first: int
    end: int
    """The number after the last one."""


@dataclass(frozen=True)
class LoadStep:
    """A segment of a load, and the messages that fall due in it."""

    segment: LoadSegment
    messages: MessageRange
