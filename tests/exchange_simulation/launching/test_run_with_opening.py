"""Runs whose book has orders of a tape before the first order: `exchange match --opening` gives the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from tests.exchange_command import exchange_in_process, run_exchange

MIX = ("--mix", "limit=60,cancel=25,replace=10,market=5", "--price-model", "two-sided")


def opening_tape(folder: Path, *words: object) -> Path:
    """Write a tape of other orders than a run's."""
    tape = folder / "opening.bin"
    exchange_in_process("tape", *MIX, "--orders", 2000, "--seed", 9, "--output", tape, *words)
    return tape


@pytest.mark.parametrize(
    "words",
    [("--subscribers", 2, "--depth"), ("--transport", "tcp", "--packing", 4), ("--transport", "memory")],
    ids=lambda words: " ".join(map(str, words)),
)
def test_a_run_with_an_opening_is_complete_and_matched_again(tmp_path: Path, words: tuple[object, ...]) -> None:
    instruments = ("--instruments", 3)
    tape = opening_tape(tmp_path, *instruments)
    load = ("--rate", 2000, "--orders", 2000, "--record", "--name", "run")
    finished = run_exchange(tmp_path, "--opening", tape, *instruments, *MIX, *load, *words)
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["status"] == "complete"
    assert record["settings"]["opening"] == str(tape)
    assert record["counts"]["orders_sent"] == 2000
    folder = tmp_path / "run"
    answers = (folder / "answers.bin").read_bytes()
    again = ("match", folder / "orders.bin", "--answers", folder / "matched.bin", "--ids")
    exchange_in_process(*again, "--opening", tape)
    assert (folder / "matched.bin").read_bytes() == answers
    exchange_in_process(*again)
    assert (folder / "matched.bin").read_bytes() != answers, "the opening changed nothing"


def test_an_opening_that_is_no_tape_is_refused_before_the_start(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.bin"
    damaged.write_bytes(opening_tape(tmp_path).read_bytes() + b"\x01")
    for opening, reason in [
        (tmp_path / "missing.bin", "cannot read"),
        (damaged, "truncated: 1 of 10 bytes at offset"),
    ]:
        refused = run_exchange(tmp_path, "--opening", opening, "--orders", 100, "--name", "refused")
        assert refused.code == 2
        assert reason in refused.err
        assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"recover": True},
        {"standby": True},
        {"journal": "folder"},
        {"gateways": 2},
        {"engines": 2, "instruments": 2},
        {"hosts": "hosts.toml"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_opening_is_refused_with_what_it_does_not_go_with(fields: dict[str, object]) -> None:
    option = next(iter(fields))
    with pytest.raises(BadSetting, match=rf"opening is 'tape.bin'; allowed is no file with --{option}: "):
        RunSettings(opening="tape.bin", **fields)


def test_the_ids_of_a_run_with_an_opening_stay_below_those_of_opening_orders() -> None:
    with pytest.raises(BadSetting, match="allowed is less than 4160749568"):
        RunSettings(opening="tape.bin", orders=31 * 2**27)
