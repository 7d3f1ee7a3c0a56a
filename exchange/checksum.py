"""The checksum of a direction: XXH64 with seed 0 over its business messages, one after the other.

It leaves out packing boundaries, hello, end and junk. So equal streams have equal checksums on every transport, and
`xxhsum -H64 tape.bin` agrees with the checksum of a run over that tape.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import xxhash

NAME = "xxh64"


class Stream(Protocol):
    """Takes the bytes of a direction in order, and has their checksum."""

    @property
    def value(self) -> int: ...

    @property
    def hex(self) -> str: ...

    def update(self, data: npt.NDArray[np.uint8]) -> None: ...


class StreamChecksum:
    """The checksum of all bytes so far."""

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
