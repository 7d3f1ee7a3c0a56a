"""The C++ program with which our speed is compared gives our answers, byte for byte, to orders of all types."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cpp import built
from exchange.messages import ASK, BID, Cancel, CancelRequest, Message, Order, ReplaceRequest, TypedOrder, encode
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.tape import match_tape
from tests.matching_engine.order_streams import Drawn

MESSAGES = 1_000
KINDS = (Order, Order, Order, TypedOrder, TypedOrder, ReplaceRequest, ReplaceRequest, CancelRequest, Cancel)


@pytest.fixture(scope="module")
def program() -> Path:
    program = built("order_types")
    if program is None:
        pytest.skip("no C++ compiler")
    return program


def long_stream(seed: int, max_price: int) -> Iterator[Message]:
    """Yield orders of all types at a few neighbouring prices, cancels and replaces; some have a wrong field."""
    chance = random.Random(seed)
    centre = chance.randint(1, max_price)
    prices: list[int] = []
    for number in range(1, MESSAGES + 1):
        near = chance.randint(max(1, centre - 3), min(max_price, centre + 3))
        is_near = chance.random() < 0.95
        drawn = Drawn(
            kind=chance.choice(KINDS),
            has_new_id=chance.random() < 0.9,
            earlier=chance.randint(0, 20),
            side=chance.choice((ASK, BID)) if chance.random() < 0.98 else 3,
            price=near if is_near else chance.randint(0, 0xFFFF),
            volume=chance.choice((chance.randint(1, 4), chance.randint(1, 100), chance.randint(0, 0xFFFF))),
            order_type=chance.choice((1, 2, 3, 4, 5)) if chance.random() < 0.95 else 6,
            keeps_price=chance.random() < 0.3,
        )
        prices.append(drawn.price)
        yield drawn.message(number, prices)


@given(seed=st.integers(0, 2**32), max_price=st.sampled_from([1, 3, 64, 127, 999, 4095, 65534]))
def test_the_program_s_answers_are_ours(
    program: Path, seed: int, max_price: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = b"".join(map(encode, long_stream(seed, max_price)))
    folder = tmp_path_factory.mktemp("program")
    tape = folder / "tape.bin"
    answers = folder / "answers.bin"
    tape.write_bytes(content)
    subprocess.run([program, str(max_price), "1", tape, answers], check=True, capture_output=True)
    ours: list[bytes] = []
    engine = MatchingEngine(OrderBook(max_price, with_ids=True))
    match_tape(engine, np.frombuffer(content, np.uint8), lambda part: ours.append(part.tobytes()))
    assert answers.read_bytes() == b"".join(ours)
