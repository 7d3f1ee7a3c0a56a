"""The seam between a file's format and its import: a file is read in chunks of bounded size."""

from __future__ import annotations

from typing import Protocol

from exchange_simulation.experiments.tapes.conversion import Conversion
from transports.frames import Bytes

# The reasons for which `convert` returns.
END_OF_CHUNK = 0  # no whole event is left
GROW = 1  # the table of resting orders must grow first
BAD = 2  # the event is none of this format


class EventFile(Protocol):
    """A file of events in one format."""

    name: str
    """The format's name, as a sentence has it."""
    tape_content: str
    """What becomes a tape, as a sentence has it: `order`, or `order of AAPL`."""
    least_event_bytes: int
    """The least bytes of an event, which becomes at most one record of a tape."""

    @property
    def events(self) -> int:
        """The events that were read so far."""

    def convert(self, conversion: Conversion, chunk: Bytes, at: int, is_last: bool) -> tuple[int, int]:
        """Convert the whole events of the chunk from `at` on. Returns why it stopped, and where."""

    def objection(self, chunk: Bytes, at: int, offset: int) -> str:
        """Return the sentence about the event at `at`, which is not whole or none of this format.

        `offset` is that of the event in the file.
        """

    def left_out(self) -> dict[str, int]:
        """Return the counts of events that no record of a tape can say, by what they are."""
