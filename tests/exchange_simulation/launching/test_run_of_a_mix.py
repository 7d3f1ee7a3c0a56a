"""Runs of order types, cancels and replaces: complete over each transport, with the answers of the engine alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from exchange.messages import CancelRequest, encode
from exchange.order_mix import OrderMix
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
    assert "--mix is paper, but the orders are those of" in outcome.err


def test_a_mixed_tape_is_replayed_by_its_own_times_with_the_answers_of_the_engine_alone(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    written = exchange_in_process("tape", *LOAD, "--rate", 2_000, "--arrivals", "poisson", "--output", tape)
    assert written.code == 0, written.err
    words = ("--tape", tape, "--speed", 2, "--record", "--name", "first")
    first = run_exchange(tmp_path, "--transport", "zeromq", *words).record
    assert first["status"] in ("complete", "saturated")
    again = run_exchange_in_process(
        tmp_path, "--tape", tmp_path / "first" / "orders.bin", "--packing", 5, "--name", "again"
    ).record
    matched = exchange_in_process("match", tape, "--ids", "--json").record
    assert first["checksums"] == again["checksums"] == matched["checksums"]
    due_ns = [np.fromfile(path, "<u8") for path in (tape.with_suffix(".due"), tmp_path / "first" / "orders.due")]
    assert (due_ns[0] // 2 == due_ns[1]).all()
    assert OrderMix.parse(first["settings"]["mix"]).has_cancels_or_replaces


def test_the_mix_of_a_tape_can_be_that_of_a_seed(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    assert exchange_in_process("tape", *LOAD, "--output", tape).code == 0
    statistics = exchange_in_process("tape", "stats", tape, "--json").record
    words = ("--mix", f"from:{tape}", "--price-model", "two-sided", "--orders", 500, "--rate", "max")
    record = run_exchange_in_process(tmp_path, *words).record
    assert record["settings"]["mix"] == statistics["mix"]


def test_a_seed_beside_a_tape_is_refused_unless_arrivals_are_random(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    assert exchange_in_process("tape", "--orders", 100, "--output", tape).code == 0
    words = ("--tape", tape, "--seed", 3, "--rate", 10_000)
    refused = run_exchange_in_process(tmp_path, *words)
    assert refused.code == 2
    assert "--seed is 3, but it changes nothing" in refused.err
    assert run_exchange_in_process(tmp_path, *words, "--arrivals", "poisson").code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no tape", "no tape"), (encode(CancelRequest(1, 1)), "no limit or post-only order is on the tape")],
)
def test_a_mix_of_a_file_that_is_no_tape_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    tape = tmp_path / "tape.bin"
    tape.write_bytes(content)
    outcome = exchange_in_process("run", "--mix", f"from:{tape}", "--results", tmp_path / "results")
    assert outcome.code == 2
    assert message in outcome.err
