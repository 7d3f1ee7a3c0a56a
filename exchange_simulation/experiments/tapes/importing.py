"""Imports a file of market data: a tape, its due times, and counts of all that a tape cannot say.

file ──▶ chunks of bounded size ──▶ EventFile.convert ──▶ records and due times ──▶ TAPE and TAPE.due
"""

from __future__ import annotations

from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO

import numpy as np

from exchange.words import counted
from exchange_simulation.experiments.tapes.conversion import (
    CANCELS,
    CHUNK_RECORDS,
    EXECUTIONS,
    HIGHEST_PRICE,
    LEFT_OUT_WORDS,
    LOWEST_PRICE,
    ORDERS,
    RECORDS,
    REPLACES,
    TAPE_BYTES,
    LeftOut,
    grown,
    new_conversion,
)
from exchange_simulation.experiments.tapes.event_file import BAD, GROW, EventFile
from exchange_simulation.launching.errors import UserError, reading, writing
from exchange_simulation.launching.files import whole_file
from gateway.tape import due_path
from transports.frames import Bytes

CHUNK_BYTES = 1 << 23
MOST_RECORDS = 2**32 - 1
"""Ids of records travel as u32."""


@dataclass(frozen=True)
class ImportedTape:
    """The outcome of an import, as `exchange tape import --json` prints it."""

    tape: str
    events: int
    """Events of the file."""
    messages: int
    """Messages on the tape: the four below."""
    orders: int
    executions: int
    """Immediate-or-cancel orders: the other side of an execution."""
    cancels: int
    replaces: int
    left_out: dict[str, int]
    """What is not on the tape, and how often; without what did not occur."""
    lowest_price: int
    """In ticks, as the highest."""
    highest_price: int


class _Import:
    """Converts a file chunk by chunk, and writes what the chunks become."""

    def __init__(self, source: Path, events: EventFile, tick: int) -> None:
        self._source = source
        self._events = events
        self.conversion = new_conversion(CHUNK_BYTES // events.least_event_bytes + 1, tick)

    def convert(self, file: FileIO, tape: BinaryIO, due_times: BinaryIO) -> None:
        """Convert the whole file. UserError if it cannot be read, is not of the format, or has too many events."""
        buffer = np.zeros(CHUNK_BYTES, np.uint8)
        offset = 0  # of the buffer's start, in the file
        filled = 0
        is_last = False
        while not is_last:
            with reading(self._source):
                received = file.readinto(buffer[filled:].data)
            is_last = received == 0
            filled += received
            chunk = buffer[:filled]
            end = self._convert_chunk(chunk, offset, is_last)
            self._write(tape, due_times)
            rest = filled - end
            if rest > 0 and (is_last or rest == len(buffer)):
                raise self._objection(chunk, end, offset)
            buffer[:rest] = chunk[end:].copy()
            offset += end
            filled = rest

    def _convert_chunk(self, chunk: Bytes, offset: int, is_last: bool) -> int:
        """Convert the whole events of a chunk; returns where they end. UserError at an event that is none."""
        at = 0
        why = GROW
        while why == GROW:
            why, at = self._events.convert(self.conversion, chunk, at, is_last)
            if why == GROW:
                self.conversion = grown(self.conversion)
        if why == BAD:
            raise self._objection(chunk, at, offset)
        if self.conversion.state[RECORDS] > MOST_RECORDS:
            raise UserError(f"{self._source} has more than {MOST_RECORDS:,} events, the most that a tape can have")
        return at

    def _objection(self, chunk: Bytes, at: int, offset: int) -> UserError:
        return UserError(f"{self._source}: {self._events.objection(chunk, at, offset + at)}")

    def _write(self, tape: BinaryIO, due_times: BinaryIO) -> None:
        """Write the records and due times of a chunk, and begin the next chunk."""
        state = self.conversion.state
        tape.write(self.conversion.tape[: state[TAPE_BYTES]].data)
        due_times.write(self.conversion.due[: state[CHUNK_RECORDS]].astype("<u8").data)
        state[TAPE_BYTES] = 0
        state[CHUNK_RECORDS] = 0

    def outcome(self, output: Path) -> ImportedTape:
        """Return the counts of what was converted. UserError if no order was."""
        state = self.conversion.state
        events = self._events.events
        if state[ORDERS] == 0:
            raise UserError(f"{self._source} has no {self._events.tape_content} among {counted(events, 'events')}")
        left_out = self._events.left_out()
        for reason in LeftOut:
            left_out[LEFT_OUT_WORDS[reason]] = int(self.conversion.left_out[reason])
        return ImportedTape(
            tape=str(output),
            events=events,
            messages=int(state[RECORDS]),
            orders=int(state[ORDERS]),
            executions=int(state[EXECUTIONS]),
            cancels=int(state[CANCELS]),
            replaces=int(state[REPLACES]),
            left_out={words: count for words, count in left_out.items() if count > 0},
            lowest_price=int(state[LOWEST_PRICE]),
            highest_price=int(state[HIGHEST_PRICE]),
        )


def import_tape(source: Path, events: EventFile, output: Path, tick: int) -> ImportedTape:
    """Write a tape of the events, and its due times. `tick` is in the file's price units.

    UserError if the source cannot be read, is not of this format or has no order, or if the output cannot be written.
    """
    due = due_path(output)
    if output == due:
        raise UserError(f"--output {output} is a name for due times: choose another for the tape")
    running = _Import(source, events, tick)
    with (
        reading(source),
        source.open("rb", buffering=0) as file,
        writing(output),
        whole_file(output) as tape,
        whole_file(due) as due_times,
    ):
        running.convert(file, tape, due_times)
        return running.outcome(output)
