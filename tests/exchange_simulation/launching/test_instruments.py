"""Runs of many instruments: complete over each kind of link, and reproduced by `exchange match` byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.reference_book import ReferenceBooks
from exchange.allowed import BadSetting
from exchange.messages import InstrumentOrder, decode_all, encode
from exchange.settings import RunSettings
from tests.exchange_command import VALID_STATUSES, exchange_in_process, run_exchange

MIX = ("--mix", "limit=60,cancel=25,replace=10,market=5", "--price-model", "two-sided")
INSTRUMENTS = 100


def run_of_instruments(results: Path, *words: object) -> tuple[Path, dict[str, Any]]:
    """Run the exchange with many instruments; return the run's folder and its record."""
    finished = run_exchange(
        results, "--instruments", INSTRUMENTS, "--rate", 8000, "--orders", 4000, "--record", "--name", "run", *words
    )
    assert finished.code == 0, finished.err
    return results / "run", finished.record


def match_again(folder: Path, tape: str, *words: object) -> None:
    """Match a recorded stream into matched.bin. The run's engine has an id index, since its mix has cancels."""
    exchange_in_process("match", folder / tape, "--answers", folder / "matched.bin", "--ids", *words)


@pytest.mark.parametrize(
    "words",
    [(), ("--packing", 4), ("--transport", "tcp"), ("--transport", "memory")],
    ids=lambda words: " ".join(map(str, words)),
)
def test_a_run_of_many_instruments_is_complete_and_matched_again(tmp_path: Path, words: tuple[object, ...]) -> None:
    folder, record = run_of_instruments(tmp_path, *MIX, *words)
    assert record["status"] in VALID_STATUSES
    assert record["settings"]["instruments"] == INSTRUMENTS
    match_again(folder, "orders.bin")
    answers = (folder / "answers.bin").read_bytes()
    assert (folder / "matched.bin").read_bytes() == answers
    reference = ReferenceBooks(INSTRUMENTS, with_ids=True)
    orders = list(decode_all((folder / "orders.bin").read_bytes()))
    assert b"".join(encode(answer) for order in orders for answer in reference.handle(order)) == answers
    instruments = {order.instrument for order in orders if isinstance(order, InstrumentOrder)}
    assert len(instruments) > 80


def test_gateways_and_subscribers_share_the_instruments(tmp_path: Path) -> None:
    folder, record = run_of_instruments(tmp_path, *MIX, "--gateways", 2, "--subscribers", 2, "--depth")
    assert record["status"] in VALID_STATUSES
    subscribers = record["market_data"]["subscribers"]
    assert [subscriber["gaps"] for subscriber in subscribers] == [0, 0]
    match_again(folder, "input.bin", "--gateways", 2, "--instruments", INSTRUMENTS)
    for name in ("", ".2"):
        assert (folder / f"matched{name}.bin").read_bytes() == (folder / f"answers{name}.bin").read_bytes()


def test_a_tape_of_instruments_is_replayed_with_as_many_as_it_names(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    exchange_in_process("tape", "--instruments", 5, "--orders", 1000, "--output", tape)
    finished = run_exchange(tmp_path, "--tape", tape, "--rate", 8000, "--record", "--name", "replayed")
    assert finished.code == 0, finished.err
    assert finished.record["settings"]["instruments"] == 5
    assert (tmp_path / "replayed" / "orders.bin").read_bytes() == tape.read_bytes()
    refused = run_exchange(tmp_path, "--tape", tape, "--instruments", 2, "--name", "refused")
    assert refused.code != 0
    assert "has an order of instrument 4, from 0 on: give 5 or more" in refused.err


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"instruments": 0}, "instruments is 0"),
        ({"instruments": 10_001}, "instruments is 10001"),
        ({"instruments": 5_000, "max_price": 65_534}, "at most 2048 where the highest price is 65534"),
        ({"instruments": 2, "pairs": 2}, "1 with --pairs: each pair has one book"),
        ({"instruments": 2, "recover": True}, "1 with --recover: a journal has the orders of one book"),
        ({"instruments": 2, "journal": "folder"}, "1 with --journal: a journal has the orders of one book"),
    ],
    ids=["none", "limit", "memory", "pairs", "recover", "journal"],
)
def test_instruments_that_cannot_be_are_refused_with_the_reason(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        RunSettings(**fields)
    assert sentence in str(refusal.value)
