"""LOBSTER's message files: a line of CSV for each event of one stock, https://lobsterdata.com/info/DataStructure.php.

34200.004241176,1,16113575,18,5853300,1        time in s, event type, order number, shares, price / 0.0001 $, direction
"""

from __future__ import annotations

import numpy as np

from exchange.compiled import cached_kernel, inlined, signed
from exchange.messages import ASK, BID
from exchange_simulation.experiments.tapes import conversion
from exchange_simulation.experiments.tapes.conversion import (
    Conversion,
    add_order,
    delete_order,
    execute_order,
    is_half_full,
    reduce_order,
)
from exchange_simulation.experiments.tapes.event_file import BAD, END_OF_CHUNK, GROW, EventFile
from transports.frames import Bytes, Longs

# Columns of a line.
TIME_NS = 0
EVENT_TYPE = 1
NUMBER = 2
SIZE = 3
PRICE = 4
DIRECTION = 5
COLUMNS = ("time", "event type", "order number", "size", "price", "direction")
COLUMN_COUNT = len(COLUMNS)
NONE_WRONG = -1
SELL = -1
BUY = 1

# Event types.
SUBMISSION = 1
PARTIAL_CANCELLATION = 2
DELETION = 3
EXECUTION = 4
HIDDEN_EXECUTION = 5
CROSS = 6
HALT = 7
LEFT_OUT_TYPES = {
    HIDDEN_EXECUTION: "executions of hidden orders",
    CROSS: "trades in an auction",
    HALT: "trading halts",
}
"""The event types that no record of a tape expresses."""
SHORTEST_LINE = len("0,1,1,1,1,1\n")
LONGEST_QUOTED = 80
"""The most characters of a line that an error quotes."""
MOST_DIGITS = 18
NS_DIGITS = 9
MOST_SECONDS = 10**9
"""Times are below this, so that their ns fit into 63 bits."""
LINE_BREAK = ord("\n")
RETURN = ord("\r")
COMMA = ord(",")
POINT = ord(".")
MINUS = ord("-")
ZERO = ord("0")
NINE = ord("9")


@inlined
def _digits(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number whose digits begin at `at`, and the offset behind them: `at` itself if there are none.

    The offset is -1 if there are too many digits.
    """
    value = 0
    digits = 0
    while at < end and ZERO <= text[at] <= NINE:
        value = 10 * value + (signed(text[at]) - ZERO)
        digits += 1
        at += 1
        if digits > MOST_DIGITS:
            return 0, -1
    return value, at


@inlined
def _whole_number(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the whole number at `at`, and the offset behind it; -1 if there is none."""
    is_negative = at < end and text[at] == MINUS
    start = at + 1 if is_negative else at
    value, behind = _digits(text, start, end)
    if behind <= start:
        return 0, -1
    return (-value if is_negative else value), behind


@inlined
def _time_ns(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the ns of a time in seconds, and the offset behind it; -1 if there is none. Digits beyond ns are cut."""
    seconds, behind = _digits(text, at, end)
    if behind <= at or seconds >= MOST_SECONDS:
        return 0, -1
    fraction = 0
    digits = 0
    at = behind
    if at < end and text[at] == POINT:
        at += 1
        while at < end and ZERO <= text[at] <= NINE:
            if digits < NS_DIGITS:
                fraction = 10 * fraction + (signed(text[at]) - ZERO)
                digits += 1
            at += 1
    while digits < NS_DIGITS:
        fraction *= 10
        digits += 1
    return seconds * 10**NS_DIGITS + fraction, at


@inlined
def _read_fields(text: Bytes, at: int, end: int, fields: Longs) -> int:
    """Read the fields of the line between two offsets. Returns the column that is wrong; NONE_WRONG if none is."""
    for column in range(COLUMN_COUNT):
        if column == TIME_NS:
            value, at = _time_ns(text, at, end)
        else:
            value, at = _whole_number(text, at, end)
        fields[column] = value
        if at < 0:
            return column
        is_at_comma = at < end and text[at] == COMMA
        is_at_end = at == end or (at + 1 == end and text[at] == RETURN)
        is_last_column = column == DIRECTION
        # A comma behind the last column is fine too: some files have a seventh column, which is ignored.
        if not is_at_comma and not (is_last_column and is_at_end):
            return column
        at += 1
    return _wrong_value(fields)


@inlined
def _wrong_value(fields: Longs) -> int:
    """Return the column whose value cannot be; NONE_WRONG if there is none."""
    if fields[EVENT_TYPE] < SUBMISSION or fields[EVENT_TYPE] > HALT:
        return EVENT_TYPE
    if fields[EVENT_TYPE] > EXECUTION:
        return NONE_WRONG
    if fields[SIZE] < 0:
        return SIZE
    if fields[DIRECTION] != SELL and fields[DIRECTION] != BUY:
        return DIRECTION
    return NONE_WRONG


@inlined
def _enter(conversion: Conversion, fields: Longs) -> None:
    """Put the event on the tape, if a record expresses it."""
    event_type = fields[EVENT_TYPE]
    time_ns = signed(fields[TIME_NS])
    number = signed(fields[NUMBER])
    size = signed(fields[SIZE])
    if event_type == SUBMISSION:
        side = BID if fields[DIRECTION] == BUY else ASK
        add_order(conversion, time_ns, number, side, signed(fields[PRICE]), size)
    elif event_type == PARTIAL_CANCELLATION:
        reduce_order(conversion, time_ns, number, size)
    elif event_type == DELETION:
        delete_order(conversion, time_ns, number)
    elif event_type == EXECUTION:
        execute_order(conversion, time_ns, number, size)


@cached_kernel(conversion)  # compiled again when a rule of conversion changes
def _convert(conversion: Conversion, text: Bytes, at: int, is_last: bool, types: Longs) -> tuple[int, int, int]:
    """Convert the whole lines from `at` on. Returns why it stopped, where, and the column that is wrong if one is.

    `types` counts the events by type.
    """
    fields = np.zeros(COLUMN_COUNT, np.int64)
    while at < len(text):
        if is_half_full(conversion):
            return GROW, at, NONE_WRONG
        end = at
        while end < len(text) and text[end] != LINE_BREAK:
            end += 1
        if end == len(text) and not is_last:
            break
        wrong_column = _read_fields(text, at, end, fields)
        if wrong_column != NONE_WRONG:
            return BAD, at, wrong_column
        types[fields[EVENT_TYPE]] += 1
        _enter(conversion, fields)
        at = min(end + 1, len(text))
    return END_OF_CHUNK, at, NONE_WRONG


class LobsterFile(EventFile):
    """Reads a message file of LOBSTER, chunk by chunk."""

    name = "LOBSTER"
    tape_content = "order"
    least_event_bytes = SHORTEST_LINE

    def __init__(self) -> None:
        self._types: Longs = np.zeros(HALT + 1, np.int64)
        self._wrong_column = 0

    @property
    def events(self) -> int:
        return int(self._types.sum())

    def convert(self, conversion: Conversion, chunk: Bytes, at: int, is_last: bool) -> tuple[int, int]:
        """Convert the lines from `at` on. Returns why it stopped, and where."""
        why, end, self._wrong_column = _convert(conversion, chunk, at, is_last, self._types)
        return why, end

    def objection(self, chunk: Bytes, at: int, offset: int) -> str:  # noqa: ARG002
        """Return the sentence about the line at `at`, which is none of LOBSTER's."""
        line = chunk[at : at + LONGEST_QUOTED].tobytes().split(b"\n")[0].decode("ascii", "backslashreplace")
        columns = ", ".join(COLUMNS)
        wrong = COLUMNS[self._wrong_column]
        return (
            f"line {self.events + 1} is no event of LOBSTER, since its {wrong} is wrong: {line!r}; a line has "
            f"{columns}, as 34200.004241176,1,16113575,18,5853300,1"
        )

    def left_out(self) -> dict[str, int]:
        """Return the counts of events that no record of a tape expresses."""
        return {words: int(self._types[event_type]) for event_type, words in LEFT_OUT_TYPES.items()}
