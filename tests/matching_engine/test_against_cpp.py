"""The C++ program with which our speed is compared gives our answers, byte for byte, to orders of all types."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cpp import built
from exchange.messages import encode
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.tape import match_tape
from tests.matching_engine.order_streams import streams


@pytest.fixture(scope="module")
def program() -> Path:
    program = built("order_types")
    if program is None:
        pytest.skip("no C++ compiler")
    return program


@given(data=st.data(), max_price=st.sampled_from([1, 3, 64, 127, 999, 4095, 65534]))
def test_the_program_s_answers_are_ours(
    program: Path, data: st.DataObject, max_price: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stream = data.draw(streams(max_price).filter(bool))
    content = b"".join(map(encode, stream))
    folder = tmp_path_factory.mktemp("program")
    tape = folder / "tape.bin"
    answers = folder / "answers.bin"
    tape.write_bytes(content)
    subprocess.run([program, str(max_price), "1", tape, answers], check=True, capture_output=True)
    ours: list[bytes] = []
    engine = MatchingEngine(OrderBook(max_price, with_ids=True))
    match_tape(engine, np.frombuffer(content, np.uint8), lambda part: ours.append(part.tobytes()))
    assert answers.read_bytes() == b"".join(ours)
