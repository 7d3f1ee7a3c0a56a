"""Loads and stores of shared words, for compiled code, in an order that another process can rely on.

Compiled code may move plain loads and stores, and keep a value in a register. These are done where they stand.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LENGTH_BYTES = 4
_WORD_BYTES = 8


def _address(context: Any, builder: Any, signature: Any, args: Any, bits: int) -> Any:
    """The address of byte args[1] of the array args[0], as a pointer to a word of this many bits."""
    start = context.make_array(signature.args[0])(context, builder, args[0]).data
    first_byte = builder.bitcast(start, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(first_byte, [args[1]]), ir.IntType(bits).as_pointer())


@intrinsic
def load_word(_typing: Any, memory: Any, at: Any) -> Any:  # noqa: ARG001 (numba types arguments by name)
    """The word of 64 bits at byte `at`. Whatever its writer stored before the word can be read after this."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, args, 64), "acquire", _WORD_BYTES)

    return types.int64(memory, types.int64), generate


@intrinsic
def store_word(_typing: Any, memory: Any, at: Any, value: Any) -> Any:  # noqa: ARG001
    """Store a word of 64 bits at byte `at`. Another process that loads it sees all earlier stores, too."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args, 64)
        builder.store_atomic(args[2], address, "release", _WORD_BYTES)
        return context.get_dummy_value()

    return types.void(memory, types.int64, types.int64), generate


@intrinsic
def load_length(_typing: Any, memory: Any, at: Any) -> Any:  # noqa: ARG001
    """The unsigned number of 32 bits at byte `at`, read once: the other process cannot change it after a check."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args, 32)
        return builder.zext(builder.load_atomic(address, "monotonic", LENGTH_BYTES), ir.IntType(64))

    return types.int64(memory, types.int64), generate


@intrinsic
def store_length(_typing: Any, memory: Any, at: Any, value: Any) -> Any:  # noqa: ARG001
    """Store an unsigned number of 32 bits at byte `at`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args, 32)
        builder.store(builder.trunc(args[2], ir.IntType(32)), address, align=LENGTH_BYTES)
        return context.get_dummy_value()

    return types.void(memory, types.int64, types.int64), generate


@intrinsic
def copy_bytes(_typing: Any, target: Any, at: Any, source: Any, begin: Any, size: Any) -> Any:  # noqa: ARG001
    """Copy `size` bytes from byte `begin` of `source` to byte `at` of `target`; the two must not overlap."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target_type, _, source_type, _, _ = signature.args
        to = context.make_array(target_type)(context, builder, args[0]).data
        from_ = context.make_array(source_type)(context, builder, args[2]).data
        cgutils.raw_memcpy(builder, builder.gep(to, [args[1]]), builder.gep(from_, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def fence(_typing: Any) -> Any:
    """Let no later load overtake an earlier store."""

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate
