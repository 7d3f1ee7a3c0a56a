"""Compiled functions and their tools: memory without bounds, the fields of records, bit search.

Numba keeps kernels on disk. It notices an edit of the kernel's own file, but not of other files whose constants are
compiled into the kernel. `cached_kernel` takes those files. If NUMBA_BOUNDSCHECK is set, every access to memory is
checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast
from zlib import crc32

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from exchange.messages import LAYOUTS, Message

P = ParamSpec("P")
R = TypeVar("R")
if numba.config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT is set, and the kernels run only compiled: unset it", name=numba.__name__)

CHECKED = bool(numba.config.BOUNDSCHECK)


def kernel(function: Callable[P, R], signature: Any = None) -> Callable[P, R]:
    """Compile a function that Python calls without the interpreter's lock, and keep it on disk.

    With a signature the function is compiled at once; without, at its first call, for the types of that call.
    """
    return cast(Callable[P, R], numba.njit(signature, cache=True, nogil=True)(function))


def fingerprint(*modules: ModuleType) -> int:
    """Return a checksum of the modules' source files."""
    return crc32(b"".join(Path(str(module.__file__)).read_bytes() for module in modules))


def cached_kernel(*frozen: ModuleType, signature: Any = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile as `kernel` does, and again when this module or a `frozen` one changes: it has their constants."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        function.__qualname__ += f"_{fingerprint(sys.modules[__name__], *frozen):08x}"  # names the file on disk
        return kernel(function, signature)

    return decorate


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function into its callers: the source has a function, the machine code has no call."""
    return cast(Callable[P, R], numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def called(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that kernels call. Use it for rare cases, so that they do not make the kernels larger."""
    return cast(Callable[P, R], numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def _start(context: Any, builder: Any, memory: Any, value: Any) -> Any:
    """The address of a pointer's or an array's first element."""
    if isinstance(memory, types.CPointer):
        return value
    return context.make_array(memory)(context, builder, value).data


def _pointer(bits: int, element: Any) -> Any:
    """Return a compiled function that turns an array into a pointer to elements of this many bits."""

    @intrinsic
    def pointer(_typing: Any, array: Any) -> Any:
        if array.layout != "C":
            raise numba.TypingError("a kernel's arrays are contiguous")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            start = _start(context, builder, signature.args[0], args[0])
            return builder.bitcast(start, ir.IntType(bits).as_pointer())

        return types.CPointer(element)(array), generate

    return pointer


def _address(context: Any, builder: Any, signature: Any, args: Any, bits: int) -> Any:
    """The address of byte args[1] of the memory args[0], as a pointer to a word of this many bits."""
    start = _start(context, builder, signature.args[0], args[0])
    first_byte = builder.bitcast(start, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(first_byte, [args[1]]), ir.IntType(bits).as_pointer())


@intrinsic
def trailing_zeros(_typing: Any, word: Any) -> Any:  # noqa: ARG001
    """The number of low bits of the word that are 0. The word itself must not be 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _memory_as(bits: int, element: Any, kind: Any) -> Callable[[Any], Any]:
    """Return a compiled function that takes an array to its memory, without bounds or reference counts.

    To count references would cost more than to match an order.
    """
    pointer = _pointer(bits, element)

    @inlined
    def memory(array: Any) -> Any:
        return array.view(kind) if CHECKED else pointer(array)

    return memory


@inlined
def signed(number: Any) -> Any:
    """The number as int64, in which the kernels calculate."""
    return np.int64(number)


@inlined
def unsigned(number: Any) -> Any:
    return np.uint64(number)


@inlined
def _check(memory: Any, at: int, size: int) -> None:
    if CHECKED and (at < 0 or at + size > len(memory)):
        raise IndexError("load or store outside the array")


def _loader(bits: int) -> Callable[[Any, int], Any]:
    """Return a compiled function that loads a word of this many bits from byte `at`.

    A word of 64 bits is unsigned, so that a shift to the right brings in zeros.
    """
    size = bits // 8

    @intrinsic
    def load(_typing: Any, memory: Any, at: Any) -> Any:  # noqa: ARG001 (numba types arguments by name)
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            loaded = builder.load(_address(context, builder, signature, args, bits), align=1)
            return builder.zext(loaded, ir.IntType(64)) if bits < 64 else loaded

        return (types.int64 if bits < 64 else types.uint64)(memory, types.int64), generate

    @inlined
    def checked(memory: Any, at: int) -> Any:
        _check(memory, at, size)
        return load(memory, at)

    return checked


def _storer(bits: int) -> Callable[[Any, int, int], None]:
    """Return a compiled function that stores a word of this many bits at byte `at`."""
    size = bits // 8

    @intrinsic
    def store(_typing: Any, memory: Any, at: Any, value: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            narrow = builder.trunc(args[2], ir.IntType(bits)) if bits < 64 else args[2]
            builder.store(narrow, _address(context, builder, signature, args, bits), align=1)
            return context.get_dummy_value()

        return types.void(memory, types.int64, types.int64), generate

    @inlined
    def checked(memory: Any, at: int, value: int) -> None:
        _check(memory, at, size)
        store(memory, at, value)

    return checked


@intrinsic
def _pointer_to(_typing: Any, address: Any) -> Any:  # noqa: ARG001
    """The address as a pointer to bytes."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.CPointer(types.uint8)(types.int64), generate


@inlined
def bytes_at(address: int, size: int) -> Any:
    """The `size` bytes at an address, as memory for the functions below."""
    pointer = _pointer_to(address)
    return numba.carray(pointer, size) if CHECKED else pointer


as_u8 = _memory_as(8, types.uint8, np.uint8)
as_u32 = _memory_as(32, types.uint32, np.uint32)
as_u64 = _memory_as(64, types.uint64, np.uint64)
as_i64 = _memory_as(64, types.int64, np.int64)
load_u8 = _loader(8)
load_u16 = _loader(16)
load_u32 = _loader(32)
load_u64 = _loader(64)
store_u8 = _storer(8)
store_u16 = _storer(16)
store_u32 = _storer(32)
store_u64 = _storer(64)


def field_reader(field: str, *messages: type[Message]) -> Callable[[Any, int], Any]:
    """Return a compiled function `read(memory, at)`, which returns a field of the record that starts at byte `at`.

    The record may be of any of these messages. ValueError if the field lies at different places in them.
    """
    places = {(LAYOUTS[message].offset(field), LAYOUTS[message].width(field)) for message in messages}
    if len(places) != 1:
        raise ValueError(f"{field} lies at different places in {', '.join(message.__name__ for message in messages)}")
    [(offset, width)] = places
    load = {1: load_u8, 2: load_u16, 4: load_u32, 8: load_u64}[width]

    @inlined
    def read(memory: Any, at: int) -> Any:
        return load(memory, at + offset)

    return read


def record_writer(message: type[Message], *fields: str) -> Callable[[Any, int, Any], int]:
    """Return a compiled function `write(memory, at, values)`: it writes a record at byte `at`, and returns its end.

    The values are a tuple in the order of `fields`. ValueError if these are not the message's fields.
    """
    if sorted(fields) != sorted(message._fields):
        raise ValueError(f"the fields of {message.__name__} are {', '.join(message._fields)}, not {', '.join(fields)}")
    layout = LAYOUTS[message]
    code = layout.code
    size = layout.size

    @inlined
    def write_type(memory: Any, at: int, _values: Any) -> int:
        store_u8(memory, at, code)
        return at + size

    def writer(earlier: Any, offset: int, width: int, place: int) -> Callable[[Any, int, Any], int]:
        """Return a function that writes the value at `place`, then calls the writer of the `earlier` fields."""
        store = {1: store_u8, 2: store_u16, 4: store_u32, 8: store_u64}[width]

        @inlined
        def write(memory: Any, at: int, values: Any) -> int:
            store(memory, at + offset, values[place])
            return earlier(memory, at, values)

        return write

    write: Callable[[Any, int, Any], int] = write_type
    for place, field in enumerate(fields):
        write = writer(write, layout.offset(field), layout.width(field), place)
    return write
