"""What the kernels need of the machine: compiled functions, unaligned loads and stores, trailing zeros.

Loads and stores go past numba's bounds check, so they check for themselves where NUMBA_BOUNDSCHECK is set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")
CHECKED = bool(numba.config.BOUNDSCHECK)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiled, called from Python without the interpreter's lock, kept on disk."""
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compiled into its callers: a name in the source, no call in the machine code."""
    return cast(Callable[P, R], numba.njit(forceinline=True)(function))


def _data(context: Any, builder: Any, array: Any, value: Any) -> Any:
    is_pointer = isinstance(array, types.CPointer)
    return value if is_pointer else context.make_array(array)(context, builder, value).data


@intrinsic
def _pointer(_typing: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _data(context, builder, signature.args[0], args[0])

    return types.CPointer(array.dtype)(array), generate


def _address(context: Any, builder: Any, array: Any, value: Any, at: Any, bits: int) -> Any:
    data = _data(context, builder, array, value)
    return builder.bitcast(builder.gep(data, [at]), ir.IntType(bits).as_pointer())


def _loader(bits: int, result: types.Integer) -> Any:
    @intrinsic
    def load(_typing: Any, array: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _address(context, builder, signature.args[0], args[0], args[1], bits)
            loaded = builder.load(pointer, align=1)
            return builder.zext(loaded, ir.IntType(64)) if bits < 64 else loaded

        return result(array, types.int64), generate

    return load


def _storer(bits: int) -> Any:
    @intrinsic
    def store(_typing: Any, array: Any, at: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _address(context, builder, signature.args[0], args[0], args[1], bits)
            narrowed = builder.trunc(args[2], ir.IntType(bits)) if bits < 64 else args[2]
            builder.store(narrowed, pointer, align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), generate

    return store


_load_u16, _load_u32, _load_u64 = _loader(16, types.int64), _loader(32, types.int64), _loader(64, types.uint64)
_store_u16, _store_u64 = _storer(16), _storer(64)


@intrinsic
def _count_trailing_zeros(_typing: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@inlined
def memory_of(array: Any) -> Any:
    """The array without its bounds and its reference count, or the array itself where bounds are checked."""
    return array if CHECKED else _pointer(array)


@inlined
def check_room(array: Any, at: int, size: int) -> None:
    """Raises where NUMBA_BOUNDSCHECK is set and the bytes lie outside the array; else nothing at all."""
    if CHECKED and (at < 0 or at + size > len(array)):
        raise IndexError("load or store outside the array")


@inlined
def load_u16(array: Any, at: int) -> int:
    check_room(array, at, 2)
    return _load_u16(array, at)


@inlined
def load_u32(array: Any, at: int) -> int:
    check_room(array, at, 4)
    return _load_u32(array, at)


@inlined
def load_u64(array: Any, at: int) -> int:
    check_room(array, at, 8)
    return _load_u64(array, at)


@inlined
def store_u16(array: Any, at: int, value: int) -> None:
    check_room(array, at, 2)
    _store_u16(array, at, value)


@inlined
def store_u64(array: Any, at: int, value: int) -> None:
    check_room(array, at, 8)
    _store_u64(array, at, value)


@inlined
def trailing_zeros(word: Any) -> int:
    """How many low bits are 0; of a word that is not 0."""
    return _count_trailing_zeros(word)
