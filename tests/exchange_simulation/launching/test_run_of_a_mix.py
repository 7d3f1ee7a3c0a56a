"""Runs of order types, cancels and replaces: complete over each transport, with the answers of the engine alone."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.exchange_command import exchange_in_process, run_exchange, run_exchange_in_process

MIX = "limit=60,cancel=30,replace=5,market=3,ioc=1,fok=1"
LOAD = ("--mix", MIX, "--price-model", "two-sided", "--orders", 3_000)


@pytest.mark.parametrize("packing", [1, 7])
@pytest.mark.parametrize("transport", ["zeromq", "tcp"])
def test_a_run_answers_a_mix_as_the_engine_alone_does(tmp_path: Path, transport: str, packing: int) -> None:
    outcome = run_exchange(
        tmp_path, "--transport", transport, *LOAD, "--rate", 2_000, "--packing", packing, "--record", "--name", "mixed"
    )
    record = outcome.record
    assert record["status"] in ("complete", "saturated")  # on a busy machine the rate may not be held
    assert record["counts"]["orders_answered"] == 3_000
    assert record["counts"]["cancelled"] > 300
    assert record["counts"]["replaced"] > 30
    streams = tmp_path / "mixed"
    tape = tmp_path / "tape.bin"
    written = exchange_in_process("tape", *LOAD, "--output", tape)
    assert written.code == 0, written.err
    assert tape.read_bytes() == (streams / "orders.bin").read_bytes()
    answers = tmp_path / "answers.bin"
    matched = exchange_in_process("match", tape, "--ids", "--answers", answers, "--json")
    assert matched.record["checksums"] == record["checksums"]
    assert answers.read_bytes() == (streams / "answers.bin").read_bytes()


def test_the_outcome_says_what_became_of_the_requests(tmp_path: Path) -> None:
    words = (
        "run",
        "--transport",
        "memory",
        *LOAD,
        "--rate",
        "max",
        "--no-page",
        "--results",
        tmp_path,
        "--name",
        "mixed",
    )
    outcome = exchange_in_process(*words)
    assert outcome.code == 0, outcome.err
    counts = orjson.loads((tmp_path / "mixed" / "run.json").read_bytes())["counts"]
    printed = " ".join(outcome.out.split())
    assert (
        f"{counts['cancelled']:,} cancelled, {counts['replaced']:,} replaced, {counts['rejections']:,} rejected"
        in printed
    )


def test_a_mix_as_fast_as_it_goes_is_complete(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--transport", "memory", *LOAD, "--rate", "max").record
    assert (record["status"], record["counts"]["orders_answered"]) == ("complete", 3_000)


def test_each_pair_has_a_stream_of_its_own(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--transport", "memory", *LOAD, "--rate", "max", "--pairs", 2).record
    first, second = record["pairs"]
    assert first["status"] == second["status"] == "complete"
    assert first["checksums"]["orders"] != second["checksums"]["orders"]


def test_a_mix_of_the_paper_sends_the_paper_s_orders(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--orders", 2_000, "--rate", "max")
    plain = run_exchange_in_process(tmp_path, *words).record
    paper = run_exchange_in_process(tmp_path, *words, "--mix", "paper").record
    assert paper["checksums"] == plain["checksums"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mix", "limit=60"), "--mix is limit=60; allowed is percentages that add up to 100"),
        (("--mix", "exchange-cor"), "'exchange-cor' is no kind"),
    ],
)
def test_a_mix_that_cannot_be_is_a_mistake_of_the_user(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    outcome = exchange_in_process("run", *words, "--results", tmp_path / "results")
    assert outcome.code == 2
    assert message in outcome.err
    assert not (tmp_path / "results").exists()


def test_a_tape_and_a_mix_are_two_sources_of_orders(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    assert exchange_in_process("tape", "--orders", 100, "--output", tape).code == 0
    outcome = exchange_in_process("run", "--tape", tape, "--mix", "paper", "--rate", "max", "--results", tmp_path)
    assert outcome.code == 2
    assert "allowed is none, where a tape is replayed" in outcome.err
