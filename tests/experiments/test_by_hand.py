"""Components started one by one, as on hosts of their own: the record that the reporter keeps, and exit codes."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.conftest import PATIENCE_S, Said, command, exchange


def reserved_url(holder: socket.socket) -> str:
    """A port that nobody else is given while the holder is open; the component may listen on it all the same."""
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return f"zeromq+tcp://127.0.0.1:{holder.getsockname()[1]}"


class ByHand:
    """Three commands, typed into three terminals."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.holders = [socket.socket() for _ in range(2)]
        self.engine, self.reporter = map(reserved_url, self.holders)
        self._started: dict[str, subprocess.Popen[str]] = {}

    def start(self, role: str, *words: object) -> None:
        places = {
            "reporter": ["--listen", self.reporter, "--results", self.results],
            "engine": ["--listen", self.engine, "--reporter", self.reporter],
            "gateway": ["--engine", self.engine, "--reporter", self.reporter, "--results", self.results / "elsewhere"],
        }
        typed = command(role, *places[role], "--run", "first", *words)
        self._started[role] = subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> dict[str, Said]:
        said = {}
        for role, process in self._started.items():
            out, err = process.communicate(timeout=PATIENCE_S)
            said[role] = Said(process.returncode, out, err)
            assert "Traceback" not in err
        return said

    def clear_up(self) -> None:
        for process in self._started.values():
            process.kill()
            process.communicate()
        for holder in self.holders:
            holder.close()

    @property
    def record(self) -> dict[str, Any]:
        return json.loads((self.results / "first" / "run.json").read_bytes())


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[ByHand]:
    typed = ByHand(tmp_path)
    yield typed
    typed.clear_up()


def test_a_run_by_hand_leaves_a_record_that_says_what_was_run(by_hand: ByHand, tmp_path: Path) -> None:
    before = datetime.now().astimezone()
    by_hand.start("reporter")
    by_hand.start("engine", "--timeout", 30)
    by_hand.start("gateway", "--timeout", 30, "--rate", 2000, "--orders", 4000, "--cpu", 0, "--record")
    assert {role: said.code for role, said in by_hand.end().items()} == dict.fromkeys(
        ("reporter", "engine", "gateway"), 0
    )
    record = by_hand.record
    settings = record["settings"]
    assert (settings["transport"], settings["url"]) == ("zeromq+tcp", by_hand.engine)
    assert (settings["cpus"], settings["orders"]) == ({"gateway": 0}, 4000)
    waited_s = (datetime.now().astimezone() - datetime.fromisoformat(record["started_at"])).total_seconds()
    assert datetime.fromisoformat(record["started_at"]) > before
    assert waited_s > record["duration_s"]
    assert (tmp_path / "elsewhere" / "first" / "orders.bin").stat().st_size == 40_000
    said = exchange("report", tmp_path / "first", "--no-spark")
    assert said.code == 0, said.err
    assert "4,000 orders sent and received" in said.out
    assert (tmp_path / "first" / "report.html").exists()


@pytest.mark.long
def test_without_a_gateway_nothing_is_invented_and_who_waited_fails(by_hand: ByHand, tmp_path: Path) -> None:
    by_hand.start("reporter", "--timeout", 1)
    by_hand.start("engine", "--timeout", 0.5)
    said = by_hand.end()
    assert {role: each.code for role, each in said.items()} == {"reporter": 1, "engine": 1}
    assert "no gateway came" in said["engine"].err
    record = by_hand.record
    assert (record["status"], record["settings"]) == ("partial", {"url": None})
    assert "settings unknown" in exchange("report", tmp_path / "first", "--no-spark").out


@pytest.mark.long
def test_a_disagreement_names_the_options_and_fails_at_both_ends(by_hand: ByHand, tmp_path: Path) -> None:
    by_hand.start("reporter", "--timeout", 1)
    by_hand.start("engine", "--policy", "exact-price", "--timeout", 20)
    by_hand.start("gateway", "--timeout", 20)
    said = by_hand.end()
    assert (said["gateway"].code, said["engine"].code) == (2, 1)
    assert "engine was started with --policy exact-price, this end with price-time" in said["gateway"].err
    assert "gateway was started with --policy price-time, this end with exact-price" in said["engine"].err


def test_streams_that_exist_are_not_overwritten(by_hand: ByHand, tmp_path: Path) -> None:
    taken = tmp_path / "elsewhere" / "first" / "orders.bin"
    taken.parent.mkdir(parents=True)
    taken.write_text("before")
    by_hand.start("gateway", "--record", "--timeout", 5)
    said = by_hand.end()["gateway"]
    assert (said.code, taken.read_text()) == (2, "before")
    assert "exists already" in said.err
