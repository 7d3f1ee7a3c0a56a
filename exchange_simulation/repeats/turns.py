"""The order of repeated measurements: repeats are interleaved, so drift of the machine affects everything alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

Some = TypeVar("Some")


def in_turns(blocks: Sequence[Sequence[Some]], repeats: int, seed: int) -> Iterator[tuple[int, Some]]:
    """Yield (repeat, member of a block), with repeats counted from 1; equal arguments give equal orders.

    Blocks are shuffled within a repeat, and members within their block. Members of one block, which are compared with
    each other, are therefore measured close in time.
    """
    random = Random(seed)
    for repeat in range(1, repeats + 1):
        shuffled = [list(block) for block in blocks]
        random.shuffle(shuffled)
        for block in shuffled:
            random.shuffle(block)
        for block in shuffled:
            for member in block:
                yield repeat, member
