"""`exchange tape stats`: figures of a tape that can be counted by hand, in words and as JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exchange.messages import ASK, BID, MARKET, CancelRequest, Order, TypedOrder, encode
from tests.exchange_command import exchange_in_process

MESSAGES = (
    Order(1, BID, 400, 10),
    Order(2, ASK, 410, 4),
    Order(3, ASK, 404, 4),
    TypedOrder(4, BID, 0, 5, MARKET),
    CancelRequest(5, 1),
    CancelRequest(6, 3),
    Order(7, BID, 399, 2),
    Order(8, BID, 398, 2),
)
DUE_NS = [0, 0, 500_000_000, 999_999_999, 1_000_000_000, 1_500_000_000, 2_500_000_000, 3_000_000_000]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "tape.bin"
    path.write_bytes(b"".join(map(encode, MESSAGES)))
    return path


def test_the_figures_are_those_that_can_be_counted(tape: Path) -> None:
    np.array(DUE_NS, "<u8").tofile(tape.with_suffix(".due"))
    figures = exchange_in_process("tape", "stats", tape, "--json").record
    assert figures["messages"] == 8
    assert figures["kinds"] == {"limit": 5, "market": 1, "cancel": 2}
    assert figures["mix"] == "limit=62.5,market=12.5,cancel=25"
    assert (figures["trades"], figures["volume_traded"], figures["order_to_trade_ratio"]) == (2, 5, 4)
    assert (figures["rejections"], figures["too_late"]) == (1, 1)
    # Bid and ask after each message: -, 10, 4, 10, no bid twice, 11, 11.
    assert figures["spread"] == {"p10_ticks": 4, "p50_ticks": 10, "p90_ticks": 11, "two_sided_percent": 62.5}
    assert figures["levels"] == {"mean": 3, "most": 3, "at_end": 3}
    assert (figures["resting_orders"], figures["resting_volume"]) == (3, 7)
    arrivals = figures["arrivals"]
    assert (arrivals["length_s"], arrivals["busiest_second"]) == (3, 4)
    assert arrivals["messages_per_s"] == pytest.approx(7 / 3)
    assert arrivals["gap_p50_us"] == 500_000
    assert arrivals["at_once_percent"] == 12.5


def test_the_words_say_the_answer_first(tape: Path) -> None:
    lines = exchange_in_process("tape", "stats", tape).out.splitlines()
    assert lines[0].endswith("tape.bin: 8 messages, 4.00 for each trade")
    assert lines[1] == "kinds     62.5 % limit, 12.5 % market, 25 % cancel"
    assert "too late  50 % of the cancels and replaces: their orders were not in the book" in lines
    assert "arrivals  unknown: no file beside the tape says when its messages are due" in lines
    assert lines[-1] == "the same mix from a seed: --mix limit=62.5,market=12.5,cancel=25"


def test_long_gaps_have_all_their_digits(tape: Path) -> None:
    tape.with_suffix(".due").write_bytes(np.array(DUE_NS, "<u8").tobytes())
    assert "gaps p50 500,000 us" in exchange_in_process("tape", "stats", tape).out


def test_a_tape_whose_orders_cannot_rest_has_no_mix(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    tape.write_bytes(encode(CancelRequest(1, 1)))
    figures = exchange_in_process("tape", "stats", tape, "--json").record
    assert (figures["mix"], figures["spread"], figures["order_to_trade_ratio"]) == (None, None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the tape is empty"), (encode(Order(1, BID, 400, 10))[:-2], "truncated: 8 of 10 bytes at offset 0")],
)
def test_a_file_that_is_no_tape_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    tape = tmp_path / "tape.bin"
    tape.write_bytes(content)
    outcome = exchange_in_process("tape", "stats", tape)
    assert outcome.code == 2
    assert message in outcome.err


def test_damaged_due_times_are_named(tape: Path) -> None:
    tape.with_suffix(".due").write_bytes(b"12345678")
    outcome = exchange_in_process("tape", "stats", tape)
    assert outcome.code == 2
    assert "8 bytes, where 8 orders take 64" in outcome.err


def test_a_tape_needs_a_name() -> None:
    outcome = exchange_in_process("tape", "--orders", 10)
    assert outcome.code == 2
    assert "--output" in outcome.err
