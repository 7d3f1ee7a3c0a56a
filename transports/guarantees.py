"""Guarantees: what becomes of messages that were sent, once an end or the server between the two dies.

A transport declares a guarantee for each of its options that changes it. Comparisons say where guarantees differ, and
docs/transports.md has them as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar
from urllib.parse import parse_qsl

Declared = TypeVar("Declared")


class Fate(Enum):
    """What becomes of messages; each value is its word for users."""

    LOST = "lost"
    KEPT = "kept"
    NO_SERVER = "no server"


class Sync(Enum):
    """When a server has messages on its disk; each value is its words for users."""

    NEVER = "never"
    BY_SYSTEM = "when the system likes"
    EVERY_TWO_MINUTES = "every two minutes"
    ONCE_A_SECOND = "once a second"
    BEFORE_CONFIRM = "before it confirms"


@dataclass(frozen=True)
class Guarantee:
    """The fate of messages that were taken, and that no reader has handled yet."""

    peer_dies: Fate
    """Whether the next reader of the same name gets them, if the reader dies."""
    server_dies: Fate
    """Whether the server has them after it was started again."""
    synced: Sync = Sync.NEVER

    @property
    def keeps_messages(self) -> bool:
        """True if messages survive the server's end, so that its disk matters."""
        return self.server_dies is Fate.KEPT

    @property
    def level(self) -> str:
        """The guarantee in a word for labels: lossy, acknowledged or durable; durable with when it is synced."""
        if self.keeps_messages:
            return f"durable, synced {self.synced.value}"
        if self.peer_dies is Fate.KEPT:
            return "acknowledged"
        return "lossy"

    @property
    def cells(self) -> tuple[str, str, str]:
        """The three cells of a row of the table for users."""
        return self.peer_dies.value, self.server_dies.value, self.synced.value


WITHOUT_SERVER = Guarantee(Fate.LOST, Fate.NO_SERVER)
"""The guarantee of transports without a server: messages are in the two ends and in the kernel between them."""
IN_MEMORY = Guarantee(Fate.LOST, Fate.LOST)
"""The guarantee of a server that passes messages on and keeps none."""


def chosen_by_options(declared: Mapping[str, Declared], options: Mapping[str, str]) -> Declared | None:
    """The last declared value whose options, written as the query of a URL, are all among `options`; None if none is.

    For example, with {"": lossy, "kind=stream": durable} the options {"kind": "stream"} have the guarantee durable.
    """
    chosen = None
    for query, value in declared.items():
        if are_given(query, options):
            chosen = value
    return chosen


def are_given(query: str, options: Mapping[str, str]) -> bool:
    """True if the options that are written as the query of a URL are all among `options`."""
    conditions = dict(parse_qsl(query))
    return all(options.get(name) == word for name, word in conditions.items())


def unlike_guarantees(guarantee_by_name: Mapping[str, Guarantee | None]) -> str:
    """A sentence on guarantees that differ, by the names of what is compared; empty if all are alike.

    For example: the guarantees differ: zeromq is lossy; redis?kind=stream is durable, synced once a second
    """
    names_by_level: dict[str, list[str]] = {}
    for name, guarantee in guarantee_by_name.items():
        level = guarantee.level if guarantee else "of no declared guarantee"
        names_by_level.setdefault(level, []).append(name)
    if len(names_by_level) < 2:
        return ""
    clauses = []
    for level, names in names_by_level.items():
        verb = "is" if len(names) == 1 else "are"
        clauses.append(f"{_joined(names)} {verb} {level}")
    return f"the guarantees differ, so this is not like against like: {'; '.join(clauses)}"


def _joined(names: Iterable[str]) -> str:
    """Names in a sentence. For example: tcp, nats and zeromq"""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
