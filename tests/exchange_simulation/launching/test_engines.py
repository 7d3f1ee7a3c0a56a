"""Runs of several engines: the instruments are shared out, all is conserved, and kept inputs reproduce the answers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.reference_book import ReferenceBooks
from exchange.instances import answers_file, input_file
from exchange.instruments import engine_of
from exchange.market_ids import gateway_of, number_of
from exchange.messages import InstrumentOrder, InstrumentQuote, Message, decode_all, encode
from tests.exchange_command import (
    VALID_STATUSES,
    Running,
    run_exchange,
    run_exchange_in_process,
)
from tests.machine import until

pytestmark = pytest.mark.xdist_group("engines")

MIX = ("--mix", "limit=50,cancel=30,replace=10,market=5,ioc=5", "--price-model", "two-sided")
MARKET = ("--instruments", 100, "--engines", 2, "--gateways", 4, "--subscribers", 4)


def answers_by_the_reference_books(orders: bytes, gateways: int) -> list[bytes]:
    """Match an engine's input plainly. Each answer goes to the gateway whose order it names, a quote to all."""
    books = ReferenceBooks(100, with_ids=True, is_shared=True)
    streams = [b""] * gateways
    for order in decode_all(orders):
        for answer in books.handle(order):  # type: ignore[arg-type]
            if isinstance(answer, InstrumentQuote):
                streams = [stream + encode(answer) for stream in streams]
                continue
            own: Message = answer._replace(id=number_of(answer.id))  # type: ignore[union-attr,call-arg]
            streams[gateway_of(answer.id) - 1] += encode(own)  # type: ignore[union-attr]
    return streams


def assert_conserved(record: dict[str, Any]) -> None:
    """Check that nothing was lost between any gateway and any engine."""
    assert record["status"] in VALID_STATUSES, record["reasons"]
    counts = record["counts"]
    assert counts["orders_sent"] == counts["orders_received"] == counts["orders_answered"]
    assert counts["answers_sent"] == counts["answers_received"]
    for entry in record["gateways"]:
        in_all = sum(session["orders"]["messages"] for session in entry["engines"])
        assert in_all == entry["orders"]["messages"]
    assert sum(entry["share"] for entry in record["engines"]) == pytest.approx(1)


def assert_input_reproduces_answers(folder: Path, gateways: int, engines: int) -> None:
    """Check that the input of each engine makes the answers that each gateway recorded from it."""
    for engine in range(1, engines + 1):
        orders = (folder / input_file(engine)).read_bytes()
        for order in decode_all(orders):
            assert not isinstance(order, InstrumentOrder) or engine_of(order.instrument, engines) == engine
        received = [(folder / answers_file(gateway, engine)).read_bytes() for gateway in range(1, gateways + 1)]
        assert all(received)
        assert answers_by_the_reference_books(orders, gateways) == received


@pytest.mark.parametrize("mix", [(), MIX], ids=["plain", "mix"])
@pytest.mark.parametrize("gateways", [1, 3])
def test_the_kept_input_of_each_engine_reproduces_every_gateway_s_answers(
    tmp_path: Path, mix: tuple[str, ...], gateways: int
) -> None:
    words = ("--instruments", 100, "--engines", 2, "--gateways", gateways, "--rate", "max", "--orders", 3000)
    finished = run_exchange_in_process(tmp_path, *words, *mix, "--record", "--name", "run")
    assert finished.code == 0, finished.err
    assert_conserved(finished.record)
    assert_input_reproduces_answers(tmp_path / "run", gateways, engines=2)


def test_the_orders_are_the_same_with_any_number_of_engines(tmp_path: Path) -> None:
    words = ("--instruments", 100, "--rate", "max", "--orders", 2000, *MIX)
    checksums = set()
    for engines in (1, 2, 3):
        finished = run_exchange_in_process(tmp_path, *words, "--engines", engines, "--name", f"run{engines}")
        assert finished.code == 0, finished.err
        checksums.add(finished.record["checksums"]["orders"])
    assert len(checksums) == 1


@pytest.mark.parametrize("transport", ["zeromq", "amqp", pytest.param("tcp", marks=pytest.mark.long)])
def test_processes_of_four_gateways_two_engines_and_four_subscribers_lose_nothing(
    tmp_path: Path, transport: str
) -> None:
    """Over a transport that lends its calls, compiled turns serve gateways and engines."""
    words = ("--transport", transport, "--rate", 1000, "--orders", 2000, "--timeout", 60)
    finished = run_exchange(tmp_path, *MARKET, *words, *MIX, "--record", "--name", "run")
    assert finished.code == 0, finished.err
    assert_conserved(finished.record)
    assert_input_reproduces_answers(tmp_path / "run", gateways=4, engines=2)


def test_a_killed_engine_ends_the_run_with_a_record_and_leaves_nobody_behind(
    running: Callable[..., Running],
) -> None:
    words = ("--instruments", 10, "--engines", 2, "--gateways", 2, "--rate", 1000, "--orders", 20_000, "--timeout", 5)
    run = running("--transport", "zeromq", *words).wait_until_under_way()

    def second_engine() -> psutil.Process | None:
        for child in run.family():
            line = child.cmdline()
            if "engine" in line and line[line.index("--instance") + 1] == "2":
                return child
        return None

    family = run.family()
    until(second_engine, "the process of engine 2").send_signal(signal.SIGKILL)
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert any("engine.2 was killed by SIGKILL" in reason for reason in finished.record["reasons"])
    assert [entry["engine"] for entry in finished.record["engines"] if "orders" in entry] == [1]
    assert not [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


REFUSED = [
    (("--engines", 0), "--engines is 0"),
    (("--engines", 17, "--instruments", 100), "--engines is 17"),
    (("--engines", 3, "--instruments", 2), "--engines is 3; allowed is at most 2, the number of --instruments"),
    (("--engines", 2, "--instruments", 9, "--packing", 10), "--engines is 2; allowed is 1 with --packing"),
    (("--engines", 2, "--instruments", 9, "--work", "1ms"), "--engines is 2; allowed is 1 with --work"),
    (("--engines", 2, "--instruments", 9, "--transport", "tcp://127.0.0.1:7000"), "leave out --engines"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_what_does_not_go_with_engines_is_refused_by_a_sentence(
    tmp_path: Path, words: tuple[object, ...], sentence: str
) -> None:
    finished = run_exchange_in_process(tmp_path, "--transport", "memory", *words)
    assert finished.code == 2
    assert sentence in " ".join(finished.err.split())
    assert not list(tmp_path.iterdir())
