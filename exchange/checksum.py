"""The checksum of a direction: XXH64 with seed 0 over its business messages, one after the other.

Packing boundaries, hello, end and junk stay out, so equal streams have equal checksums on every transport,
and `xxhsum -H64 tape.bin` agrees with what a run over that tape reports.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import xxhash

NAME = "xxh64"


class Stream(Protocol):
    """What takes the bytes of a direction, in order, and knows their checksum."""

    @property
    def value(self) -> int: ...

    @property
    def hex(self) -> str: ...

    def update(self, data: npt.NDArray[np.uint8]) -> None: ...


class StreamChecksum:
    """A running checksum."""

    def __init__(self) -> None:
        self._state = xxhash.xxh64()

    def update(self, data: npt.NDArray[np.uint8]) -> None:
        self._state.update(data.data)

    @property
    def value(self) -> int:
        return self._state.intdigest()

    @property
    def hex(self) -> str:
        return self._state.hexdigest()
