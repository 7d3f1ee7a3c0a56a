"""Several components of one role in a run: gateway, gateway.2, ... each with the engine of the same number.

On the wire a source's or a meter's number, which is less than 8, has the instance in the high five bits of its byte:

    byte = (instance - 1) << 3 | number
"""

from __future__ import annotations

NUMBER_BITS = 3
INSTANCES = range(1, 1 + (1 << 8 - NUMBER_BITS))
"""What a byte has room for."""
MAX_PAIRS = 16
"""Of a run; of a gateway and its engine each."""


def tagged(number: int, instance: int) -> int:
    """The byte; of the first instance the number itself."""
    return (instance - 1) << NUMBER_BITS | number


def untagged(byte: int) -> tuple[int, int]:
    """(number, instance)"""
    return byte & (1 << NUMBER_BITS) - 1, 1 + (byte >> NUMBER_BITS)


def named(role: str, instance: int) -> str:
    """As records have it: gateway, gateway.2, ..."""
    return role if instance == 1 else f"{role}.{instance}"


def spool_file(number: int, reporter: int = 1) -> str:
    """The files of several reporters lie side by side."""
    return f"{number:06}.jsonl" if reporter == 1 else f"{reporter}-{number:06}.jsonl"


def role_of(name: str) -> str:
    return name.partition(".")[0]


def instance_of(name: str) -> int:
    """Of a name that `named` has made."""
    return int(name.partition(".")[2] or 1)
