"""A table with the addresses of the links' data, a row for each link, so that one compiled turn can serve all links.

All links are of one transport, so the functions that they lend are the same, and are not in the table. Their numbers
and their memory differ: a row has the addresses of both. The columns from LINK_COLUMNS on belong to the component whose
turns use the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from transports.frames import Longs
from transports.lending import Lent

# Columns of a row.
NUMBERS = 0  # the address of the link's numbers
NUMBERS_LENGTH = 1
MEMORY = 2  # the address of the link's memory
MEMORY_LENGTH = 3
FIRST_POLLFD = 4  # the first of the link's descriptors among those of all links
MAY_HAVE_SENT = 5  # 1 if the peer may have sent something, so that this end receives before its next sleep
LINK_COLUMNS = 6


@intrinsic
def _pointer(_typing: Any, address: Any) -> Any:  # noqa: ARG001
    """The pointer to an address."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@njit(inline="always")
def numbers_of(rows: Longs, row: int) -> Any:
    """The numbers of a row's link."""
    return numba.carray(_pointer(rows[row, NUMBERS]), (rows[row, NUMBERS_LENGTH],), np.int64)


@njit(inline="always")
def memory_of(rows: Longs, row: int) -> Any:
    """The memory of a row's link."""
    return numba.carray(_pointer(rows[row, MEMORY]), (rows[row, MEMORY_LENGTH],), np.uint8)


class LentTable:
    """Addresses of links' data, and the descriptors of all links."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows: Longs = np.zeros((rows, columns), np.int64)
        self.pollfds: Longs = np.zeros(0, np.int64)
        """The descriptors on which a turn sleeps."""
        self.owners: Longs = np.zeros(0, np.int64)
        """The row of each descriptor."""

    def place(self, lent_of_rows: Sequence[tuple[int, Lent]]) -> None:
        """Clear the table, and note where the numbers and memory of these rows' links are."""
        pollfds: list[int] = []
        owners: list[int] = []
        self.rows[:] = 0
        for number, lent in lent_of_rows:
            row = self.rows[number]
            row[NUMBERS] = lent.numbers.ctypes.data
            row[NUMBERS_LENGTH] = len(lent.numbers)
            row[MEMORY] = lent.memory.ctypes.data
            row[MEMORY_LENGTH] = len(lent.memory)
            row[FIRST_POLLFD] = len(pollfds)
            row[MAY_HAVE_SENT] = 1
            of_link = [] if lent.pollfds is None else lent.pollfds.tolist()
            pollfds += of_link
            owners += [number] * len(of_link)
        self.pollfds = np.array(pollfds, np.int64)
        self.owners = np.array(owners, np.int64)
