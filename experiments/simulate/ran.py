"""What whoever carries out a simulation is asked, and what comes back of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

OnParts = Callable[[int], None]
"""Called now and then with the number of parts that are done."""


@dataclass(frozen=True)
class Ran:
    """The row of every instrument; start-up is all that comes before the first order, and is no part of the rest."""

    rows: pa.Table
    start_up_s: float
    matching_s: float
    notes: tuple[str, ...] = ()
    """For the user."""
