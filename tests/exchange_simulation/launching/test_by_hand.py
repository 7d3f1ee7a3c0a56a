"""Components started one by one, as on hosts of their own: the record that the reporter keeps, and exit codes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from exchange.instances import instance_of, role_of
from exchange.results import EngineResult, GatewayResult, ReporterResult, StreamCounts
from exchange.settings import RunSettings
from exchange_simulation.cli.main import main
from exchange_simulation.launching.run import conditions_here, record_by_hand
from exchange_simulation.launching.services import TOKEN, link_token
from tests.broker import shares_the_broker
from tests.exchange_command import VALID_STATUSES, FinishedCommand, command, exchange, run_exchange_in_process
from tests.machine import PATIENCE_S, until


def reserved_url(holder: socket.socket) -> str:
    """A port that nobody else is given while the holder is open; the component may listen on it all the same."""
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return f"zeromq+tcp://127.0.0.1:{holder.getsockname()[1]}"


class ByHand:
    """Three commands, typed into three terminals; two more for a second pair."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.holders = [socket.socket() for _ in range(3)]
        self.engine, self.reporter, self.second_engine = map(reserved_url, self.holders)
        self._started: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, *words: object) -> None:
        role = role_of(name)
        engine = self.engine if instance_of(name) == 1 else self.second_engine
        places = {
            "reporter": ["--listen", self.reporter, "--results", self.results],
            "engine": ["--listen", engine, "--reporter", self.reporter],
            "gateway": ["--engine", engine, "--reporter", self.reporter, "--results", self.results / "elsewhere"],
        }
        if "--engine" in words:
            places[role] = places[role][2:]
        typed = command(role, *places[role], "--run", "first", *words)
        self._started[name] = subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> dict[str, FinishedCommand]:
        output = {}
        for role, process in self._started.items():
            out, err = process.communicate(timeout=PATIENCE_S)
            output[role] = FinishedCommand(process.returncode, out, err)
            assert "Traceback" not in err
        return output

    def signal(self, name: str, number: signal.Signals) -> None:
        self._started[name].send_signal(number)

    def wait(self, name: str) -> None:
        """Until it has ended by itself."""
        self._started[name].wait(PATIENCE_S)

    def kill(self, name: str) -> None:
        self._started[name].kill()
        self._started[name].wait()

    def start_endless(self) -> int:
        """Start an endless run. Returns the components' --timeout, which is longer if their start is slow."""
        return next(filter(self._start_all, (5, 20, 80)))

    def _start_all(self, timeout_s: int) -> bool:
        """Start an endless run in a folder of its own. False if a component did not wait for the start of another."""
        self.clear_up(and_ports=False)
        self.results = self.results / f"patient for {timeout_s} s"
        for name, *load in (("reporter",), ("engine",), ("gateway", "--rate", 2000, "--duration", 600)):
            self.start(name, "--timeout", timeout_s, *load)
        spool = self.results / "first" / "spool"

        def is_under_way() -> bool:
            return any('"traffic"' in path.read_text() for path in spool.glob("*.jsonl"))

        def has_ended() -> bool:
            return any(process.poll() is not None for process in self._started.values())

        until(lambda: is_under_way() or has_ended(), "a second in the spool, or the end of a component")
        return not has_ended()

    def clear_up(self, and_ports: bool = True) -> None:
        for process in self._started.values():
            process.kill()
            process.communicate()
        for holder in self.holders if and_ports else ():
            holder.close()

    @property
    def record(self) -> dict[str, Any]:
        return json.loads((self.results / "first" / "run.json").read_bytes())


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[ByHand]:
    typed = ByHand(tmp_path)
    yield typed
    typed.clear_up()


def test_a_run_by_hand_leaves_a_record_with_its_settings(by_hand: ByHand, tmp_path: Path, keys: Path) -> None:
    before = datetime.now().astimezone()
    by_hand.start("reporter", "--secure", keys)
    by_hand.start("engine", "--secure", keys, "--timeout", 30)
    by_hand.start(
        "gateway", "--secure", keys, "--timeout", 30, "--rate", 2000, "--orders", 4000, "--cpu", 0, "--record"
    )
    assert {role: finished.code for role, finished in by_hand.end().items()} == dict.fromkeys(
        ("reporter", "engine", "gateway"), 0
    )
    record = by_hand.record
    settings = record["settings"]
    assert settings["transport"] == "zeromq+tcp"
    assert settings["url"] == f"{by_hand.engine}?keys={keys}"
    assert settings["cpus"] == {"gateway": 0}
    assert settings["orders"] == 4000
    waited_s = (datetime.now().astimezone() - datetime.fromisoformat(record["started_at"])).total_seconds()
    assert datetime.fromisoformat(record["started_at"]) > before
    assert waited_s > record["duration_s"]
    assert (tmp_path / "elsewhere" / "first" / "orders.bin").stat().st_size == 40_000
    finished = exchange("report", tmp_path / "first", "--no-spark")
    assert finished.code == 0, finished.err
    assert "4,000 orders sent and received" in finished.out
    assert (tmp_path / "first" / "report.html").exists()


def test_a_reporter_that_was_killed_leaves_what_a_record_can_be_made_of(by_hand: ByHand) -> None:
    by_hand.start_endless()
    by_hand.kill("reporter")
    finished = exchange("results", "repair", by_hand.results / "first")
    assert finished.code == 0
    assert "the reporter ended without writing run.json" in finished.out
    assert by_hand.record["counts"]["orders_sent"] > 0
    assert not (by_hand.results / "first" / "begun.json").exists()


@pytest.mark.parametrize("over", ["zeromq", pytest.param("amqp", marks=[pytest.mark.long, shares_the_broker])])
def test_a_gateway_that_falls_silent_ends_engine_and_reporter(
    over: str, by_hand: ByHand, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a broker its host freezes, so nobody closes a connection; over one its death is not noticed either."""
    if over == "amqp":
        broker = request.getfixturevalue("brokers")("amqp")
        by_hand.engine = by_hand.reporter = broker.url
        for name, value in broker.environment.items():
            monkeypatch.setenv(name, value)
    timeout_s = by_hand.start_endless()
    by_hand.signal("gateway", signal.SIGSTOP if over == "zeromq" else signal.SIGKILL)
    for name in ("engine", "reporter"):
        by_hand.wait(name)
    by_hand.kill("gateway")
    output = by_hand.end()
    assert output["engine"].code == 1
    assert output["reporter"].code == 1
    assert f"the gateway said nothing for {timeout_s + 2} s" in output["engine"].err
    assert by_hand.record["status"] == "partial"
    assert by_hand.record["counts"]["orders_sent"] >= 2000


def test_a_gateway_without_orders_for_long_is_not_silent(tmp_path: Path) -> None:
    """There is no order for longer than the timeout."""
    finished = run_exchange_in_process(tmp_path, "--rate", 0.15, "--orders", 2, "--timeout", 3)
    assert finished.code == 0
    assert finished.record["status"] in VALID_STATUSES
    assert finished.record["counts"]["junk_frames"] == 0, finished.err


def test_a_result_that_cannot_be_read_is_named_and_the_others_count(tmp_path: Path) -> None:
    _, engine = ended(RunSettings(), seed=1)
    forged = {"gateway": {"orders": 7}, "engine": asdict(engine)}
    reporter = ReporterResult(
        received=4, announced=4, checksums_agree=True, junk_frames=0, handshakes_refused=0, samples=0, results=forged
    )
    assert record_by_hand(tmp_path, conditions_here("x"), reporter, 1, RunSettings(), cpu=None) == 1
    record = json.loads((tmp_path / "run.json").read_bytes())
    assert record["status"] == "partial"
    assert "the gateway's result cannot be read: Expected `object`, got `int` - at `$.orders`" in record["reasons"][0]
    assert record["counts"]["orders_received"] == 1


@pytest.mark.long
def test_without_a_gateway_the_record_has_no_figures_and_the_run_fails(by_hand: ByHand, tmp_path: Path) -> None:
    by_hand.start("reporter", "--timeout", 1)
    by_hand.start("engine", "--timeout", 0.5)
    output = by_hand.end()
    assert {role: each.code for role, each in output.items()} == {"reporter": 1, "engine": 1}
    assert "no gateway came" in output["engine"].err
    record = by_hand.record
    assert record["status"] == "partial"
    assert record["settings"] == {"url": None}
    assert "settings unknown" in exchange("report", tmp_path / "first", "--no-spark").out


@pytest.mark.long
def test_a_disagreement_names_the_options_and_fails_at_both_ends(by_hand: ByHand, tmp_path: Path) -> None:
    by_hand.start("reporter", "--timeout", 1)
    by_hand.start("engine", "--policy", "exact-price", "--timeout", 20)
    by_hand.start("gateway", "--timeout", 20)
    output = by_hand.end()
    assert output["gateway"].code == 2
    assert output["engine"].code == 1
    assert "engine was started with --policy exact-price, this end with price-time" in output["gateway"].err
    assert "gateway was started with --policy price-time, this end with exact-price" in output["engine"].err


@pytest.mark.long
def test_different_numbers_of_instruments_are_named_and_fail_at_both_ends(by_hand: ByHand) -> None:
    by_hand.start("reporter", "--timeout", 1)
    by_hand.start("engine", "--timeout", 20)
    by_hand.start("gateway", "--instruments", 5, "--timeout", 20)
    output = by_hand.end()
    assert output["gateway"].code == 2
    assert output["engine"].code == 1
    assert "engine was started with --instruments 1, this end with 5: give both the same" in output["gateway"].err
    assert "gateway was started with --instruments 5, this end with 1: give both the same" in output["engine"].err


@pytest.mark.long
def test_engines_in_another_order_than_their_addresses_are_refused_by_both_ends(by_hand: ByHand) -> None:
    market = ("--engines", 2, "--instruments", 10, "--timeout", 40)
    by_hand.start("reporter", "--timeout", 10, "--engines", 2)
    by_hand.start("engine", *market, "--instance", 1)
    by_hand.start("engine.2", *market, "--instance", 2)
    by_hand.start("gateway", *market, "--engine", f"{by_hand.second_engine} {by_hand.engine}")
    output = by_hand.end()
    assert output["gateway"].code == 2
    assert output["engine"].code == output["engine.2"].code == 1
    assert "address 1 of --engine leads to engine 2" in output["gateway"].err
    assert "gateway takes this engine for engine 2, and its --instance is 1" in output["engine"].err
    assert "gateway takes this engine for engine 1, and its --instance is 2" in output["engine.2"].err


def test_streams_that_exist_are_not_overwritten(by_hand: ByHand, tmp_path: Path) -> None:
    taken = tmp_path / "elsewhere" / "first" / "orders.bin"
    taken.parent.mkdir(parents=True)
    taken.write_text("before")
    by_hand.start("gateway", "--record", "--timeout", 5)
    finished = by_hand.end()["gateway"]
    assert finished.code == 2
    assert taken.read_text() == "before"
    assert "exists already" in finished.err


@pytest.mark.long
def test_two_pairs_by_hand_report_to_one_reporter(by_hand: ByHand) -> None:
    by_hand.start("reporter", "--pairs", 2)
    for instance in (1, 2):
        of_pair = ("--instance", instance, "--timeout", 30)
        by_hand.start(f"engine.{instance}" if instance > 1 else "engine", *of_pair)
        words = ("--rate", 2000, "--orders", 4000, "--seed", 7)
        by_hand.start(f"gateway.{instance}" if instance > 1 else "gateway", *of_pair, *words)
    output = by_hand.end()
    assert {each.code for each in output.values()} == {0}, output
    assert "gateway.2: done" in output["gateway.2"].err
    record = by_hand.record
    assert record["settings"]["pairs"] == 2
    assert record["settings"]["seed"] == 7
    assert record["counts"]["orders_sent"] == 8000
    first, second = record["pairs"]
    assert first["checksums"]["orders"] != second["checksums"]["orders"]


def ended(settings: RunSettings, seed: int) -> tuple[GatewayResult, EngineResult]:
    """A pair that had one order, and said two messages each."""
    counts = {stream: StreamCounts(messages=1, checksum=f"{0xA:016x}") for stream in ("orders", "answers")}
    output = {"sent": 1, "sent_checksum": 0xA, "received": 0, "received_checksum": 0}
    answered = {**output, "received": 1, "received_checksum": 0xA}
    gateway = GatewayResult(
        settings=settings.as_dict(),
        seed=seed,
        **counts,
        orders_answered=1,
        trades=0,
        confirmations=1,
        quotes=0,
        rejections=0,
        junk_frames=0,
        samples=0,
        duration_s=0.5,
        backlog_growth=0,
        usage={},
        sockets=[],
        engine_said=answered,
        statistics_sent=2,
    )
    engine = EngineResult(
        **counts, junk_frames=0, handshakes_refused=0, usage={}, sockets=[], gateway_said=output, statistics_sent=2
    )
    return gateway, engine


def test_a_reporter_of_several_records_the_pairs_that_report_to_it(tmp_path: Path) -> None:
    settings = RunSettings(transport="tcp://hostb:7000", seed=7, cpus={"gateway": 3})
    results = {}
    for pair in (2, 4):
        gateway, engine = ended(settings, seed=pair)
        results |= {f"gateway.{pair}": asdict(gateway), f"engine.{pair}": asdict(engine)}
    reporter = ReporterResult(
        received=8, announced=8, checksums_agree=True, junk_frames=0, handshakes_refused=0, samples=0, results=results
    )
    who = RunSettings(pairs=4, reporters=2)
    before = conditions_here("x")
    assert record_by_hand(tmp_path, before, reporter, 2, who, cpu=1) == 0
    record = json.loads((tmp_path / "run.json").read_bytes())
    assert record["status"] == "complete"
    assert [pair["pair"] for pair in record["pairs"]] == [2, 4]
    told = record["settings"]
    assert told["pairs"] == 4
    assert told["reporters"] == 2
    assert told["seed"] == 7
    assert told["transport"] == "tcp"
    assert told["cpus"] == {"gateway.2": 3, "gateway.4": 3, "reporter.2": 1}
    assert record["counts"]["orders_sent"] == 2


def test_the_secret_of_a_run_names_no_queue_at_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "secret")
    assert [link_token("first", url) for url in ("tcp://hostb:7000", "amqp://hostb")] == ["secret", "first"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("reporter", "--pairs", "17"), "--pairs is 17; allowed is a whole number from 1 to 16"),
        (("reporter", "--pairs", "2", "--reporters", "3"), "--reporters is 3; allowed is a whole number from 1 to 2"),
        (("reporter", "--instance", "2"), "--instance is 2; allowed is 1 to 1, since --reporters is 1"),
        (("engine", "--reporter", "tcp://x:1", "--instance", "17"), "17 is not in the range 1<=x<=16"),
    ],
)
def test_impossible_settings_get_an_error(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    role, *more = words
    place = ["--results", str(tmp_path)] * (role == "reporter")
    finished = CliRunner().invoke(main, [role, "--listen", "tcp://127.0.0.1:0", "--run", "x", *place, *more])
    assert finished.exit_code == 2
    assert told in finished.output, finished.output
    assert not list(tmp_path.iterdir())
