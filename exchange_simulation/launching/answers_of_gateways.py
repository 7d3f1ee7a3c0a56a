"""The answers of a shared engine, divided among its gateways again, from the input that the engine kept."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from exchange.checksum import StreamChecksum
from exchange.instances import named
from exchange.market_ids import NUMBER_BITS
from exchange.messages import ANSWER_TYPES, sizes_by_code
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import whole_file
from matching_engine.sessions.routing import ID_AT, routed
from matching_engine.tape import offsets_of, order_offsets

Bytes = npt.NDArray[np.uint8]
_ANSWER_SIZES = sizes_by_code(ANSWER_TYPES)


def check_gateways_on(tape: Path, orders: Bytes, gateways: int) -> None:
    """UserError if the tape has an order of none of this many gateways. MalformedMessage if it is no tape."""
    starts = order_offsets(orders)[:-1]
    ids = orders[starts[:, None] + np.arange(ID_AT, ID_AT + 4)].view("<u4")[:, 0]
    numbers = ids >> NUMBER_BITS
    for number in (int(numbers.min()), int(numbers.max())):
        if not 1 <= number <= gateways:
            whose = f"gateway {number}" if number else "no gateway"
            raise UserError(
                f"{tape} has orders of {whose}, and --gateways is {gateways}: give the number of the run, and its "
                f"input.bin"
            )


class AnswersOfGateways:
    """Divides answers among gateways: a count and a checksum for each, and a file if there is a path."""

    def __init__(self, gateways: int, path: Path | None, files: contextlib.ExitStack, *, get_quotes: bool) -> None:
        """`path` is the file of gateway 1; the files are closed with `files`. OSError if one cannot be written.

        `get_quotes`: each quote goes to every gateway; otherwise to none.
        """
        self._gateways = gateways
        self._get_quotes = get_quotes
        self._checksums = [StreamChecksum() for _ in range(gateways)]
        self._counts = [0] * gateways
        self._files: list[IO[bytes]] = []
        if path is not None:
            for number in range(1, gateways + 1):
                self._files.append(files.enter_context(whole_file(_path_of(path, number))))

    def take(self, answers: Bytes) -> None:
        """Divide these answers, whole records one after the other, in market ids."""
        offsets = offsets_of(answers, _ANSWER_SIZES)
        parts = routed(answers, offsets, self._gateways, get_quotes=self._get_quotes)
        for i, part in enumerate(parts):
            self._checksums[i].update(part)
            self._counts[i] += len(offsets_of(part, _ANSWER_SIZES)) - 1
            if self._files:
                self._files[i].write(part.data)

    @property
    def figures(self) -> list[dict[str, Any]]:
        """Count and checksum of each gateway's answers."""
        figures = []
        for i in range(self._gateways):
            figures.append({"gateway": i + 1, "answers": self._counts[i], "checksum": self._checksums[i].hex})
        return figures


def _path_of(path: Path, number: int) -> Path:
    """Return the file of a gateway's answers. For example: answers.bin, answers.2.bin"""
    return path.with_name(f"{named(path.stem, number)}{path.suffix}")
