"""The checksum of a direction: XXH64 with seed 0 over all of its bytes, however they are divided into frames.

Compiled turns hash the bytes that they receive and send, so the state is an array of bytes that kernels share:

    state[0:32]   the four lanes, u64, each of which takes 8 bytes of a stripe of 32
    state[32:40]  how many bytes have come, u64
    state[40:72]  the bytes after the last whole stripe

Source of the algorithm: the specification of xxHash, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types, uint64

from exchange.compiled import inlined, kernel, load_u8, load_u64, signed, store_u8, store_u64

State = npt.NDArray[np.uint8]
_MODULUS = 2**64
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_COUNT_AT = 32
_REST_AT = 40
STATE_BYTES = 72
_STRIPE = 32
_DATA = [types.Array(types.uint8, 1, "C", readonly=readonly) for readonly in (False, True)]


@inlined
def _round(lane: int, word: int) -> int:
    """The value of a lane after it took in a word of 8 bytes."""
    lane += word * uint64(_P2)
    return (lane << uint64(31) | lane >> uint64(33)) * uint64(_P1)


@inlined
def _take_stripe(state: State, data: npt.NDArray[np.uint8], at: int) -> None:
    """Take a stripe of 32 bytes, which begins at byte `at` of the data, into the four lanes."""
    for lane in range(0, _STRIPE, 8):
        store_u64(state, lane, signed(_round(load_u64(state, lane), load_u64(data, at + lane))))


@inlined
def hash_into(state: State, data: npt.NDArray[np.uint8], begin: int, end: int) -> None:
    """Continue the checksum over data[begin:end]."""
    count = signed(load_u64(state, _COUNT_AT))
    rest = count % _STRIPE
    store_u64(state, _COUNT_AT, count + end - begin)
    while begin < end and rest > 0:
        store_u8(state, _REST_AT + rest, load_u8(data, begin))
        rest = (rest + 1) % _STRIPE
        begin = begin + 1
        if rest == 0:
            _take_stripe(state, state, _REST_AT)
    while begin + _STRIPE <= end:
        _take_stripe(state, data, begin)
        begin += _STRIPE
    for place in range(end - begin):
        store_u8(state, _REST_AT + rest + place, load_u8(data, begin + place))


def _hash_all(state: State, data: npt.NDArray[np.uint8]) -> None:
    hash_into(state, data, 0, len(data))


_update = kernel(_hash_all, [types.void(types.uint8[::1], data) for data in _DATA])


class StreamChecksum:
    """The checksum of all bytes so far."""

    keeps_bytes = False
    """Whether the bytes themselves are needed, too, so that compiled turns must leave them for `update`."""

    def __init__(self) -> None:
        self.state: State = np.zeros(STATE_BYTES, np.uint8)
        self.state[:_STRIPE].view("<u8")[:] = [(_P1 + _P2) % _MODULUS, _P2, 0, -_P1 % _MODULUS]

    def update(self, data: npt.NDArray[np.uint8]) -> None:
        """Continue the checksum over these bytes."""
        _update(self.state, data)

    def copy(self) -> StreamChecksum:
        """Return an independent copy of the checksum so far."""
        other = StreamChecksum()
        other.state[:] = self.state
        return other

    @property
    def value(self) -> int:
        """The checksum of all bytes so far."""
        *lanes, count = self.state[:_REST_AT].view("<u8").tolist()
        value = _merged(lanes) if count >= _STRIPE else _P5
        rest = self.state[_REST_AT:].tobytes()[: count % _STRIPE]
        return _mixed(_with_rest((value + count) % _MODULUS, rest))

    def flush(self) -> None:
        """Do nothing, since no bytes are kept."""

    @property
    def hex(self) -> str:
        """The checksum as 16 hexadecimal digits."""
        return f"{self.value:016x}"


def _rotated(word: int, bits: int) -> int:
    """Rotate a word of 64 bits to the left."""
    return (word << bits | word >> 64 - bits) % _MODULUS


def _round_of_zero(word: int) -> int:
    """Return the value of a lane that was 0 after it took in a word."""
    return _rotated(word * _P2 % _MODULUS, 31) * _P1 % _MODULUS


def _merged(lanes: list[int]) -> int:
    """Merge the four lanes into one value."""
    value = sum(map(_rotated, lanes, (1, 7, 12, 18)))
    for lane in lanes:
        value = ((value ^ _round_of_zero(lane)) * _P1 + _P4) % _MODULUS
    return value


def _with_rest(value: int, rest: bytes) -> int:
    """Take in the bytes after the last stripe: as words of 8 bytes, then one of 4, then single ones."""
    while len(rest) >= 8:
        value = (_rotated(value ^ _round_of_zero(int.from_bytes(rest[:8], "little")), 27) * _P1 + _P4) % _MODULUS
        rest = rest[8:]
    if len(rest) >= 4:
        word = int.from_bytes(rest[:4], "little") * _P1 % _MODULUS
        value = (_rotated(value ^ word, 23) * _P2 + _P3) % _MODULUS
        rest = rest[4:]
    for byte in rest:
        value = _rotated(value ^ byte * _P5 % _MODULUS, 11) * _P1 % _MODULUS
    return value


def _mixed(value: int) -> int:
    """Return the final mix of the bits: XXH64's avalanche."""
    value = (value ^ value >> 33) * _P2 % _MODULUS
    value = (value ^ value >> 29) * _P3 % _MODULUS
    return value ^ value >> 32
