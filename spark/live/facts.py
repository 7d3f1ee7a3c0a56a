"""What is known of each second but its completion times, and which seconds a batch changed."""

from __future__ import annotations

from typing import Any

from spark.live.note import Note
from spark.summary.facts import Facts


class LiveFacts:
    def __init__(self) -> None:
        self.known: set[int] = set()
        """Seconds that some source has spoken of."""
        self._ends: dict[str, int] = {}
        self._facts = Facts()

    @property
    def ended(self) -> bool:
        """Whether every reporter has closed its part."""
        return bool(self._ends) and len(self._ends) >= max(self._ends.values())

    def is_final(self, second: int) -> bool:
        """Nothing more of it is to come, unless late: a later second's traffic is known of each gateway, or all is."""
        return self.ended or second < self._facts.open_from

    def take(self, note: Note) -> set[int]:
        """The seconds about which something else may be known now."""
        open_from = self._facts.open_from
        changed = self._facts.take(note.facts)
        self.known |= set(note.seconds)
        self._ends |= note.ends
        if changed is None:
            return set(self.known)
        open_from = min(open_from, self._facts.open_from)
        return (changed | set(note.timed) | {second for second in self.known if second >= open_from}) & self.known

    def row(self, second: int) -> dict[str, Any]:
        """Counts, rates and CPU; what is not known is not in it."""
        return self._facts.row(second)
