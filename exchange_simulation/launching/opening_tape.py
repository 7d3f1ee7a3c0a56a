"""The tape of orders that an engine's book has before the first order: read for `exchange run` and `exchange match`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from exchange.messages import MalformedMessage
from exchange_simulation.launching.errors import reading
from transports.regular_files import check_regular

if TYPE_CHECKING:
    from matching_engine.engine import MatchingEngine
    from transports.frames import Bytes


def read_opening(path: Path) -> Bytes:
    """Return the bytes of an opening tape. UserError if it cannot be read."""
    with reading(path):
        check_regular(path)
        return np.fromfile(path, np.uint8)


def needs_ids(path: Path, opening: Bytes) -> bool:
    """Return whether the book must find orders by id. UserError, with the offset, if the opening is no tape."""
    from matching_engine.opening_orders import has_cancels_or_replaces

    with reading(path, MalformedMessage):
        return has_cancels_or_replaces(opening)


def fill_book_of(engine: MatchingEngine, path: Path, opening: Bytes) -> None:
    """Put the opening's orders into the engine's book. UserError, with the offset, if the engine cannot take them."""
    from matching_engine.opening_orders import fill_book

    with reading(path, MalformedMessage):
        fill_book(engine, opening)
