"""`exchange faults`: real runs with real faults, and what is said of them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from experiments.faults.injection import FAULTS, deaf, disconnect
from reports.faults.table import answer, fails
from tests.broker import need_rabbitmq
from tests.exchange_command import exchange

QUICK = ("faults", "--quick", "--json", "--name", "it")


def connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        return client, listener.accept()[0]


def test_a_disconnected_socket_resets_its_peer() -> None:
    ours, theirs = connected()
    with ours, theirs:
        disconnect(ours)
        with pytest.raises(ConnectionResetError):
            theirs.recv(1)


def test_a_deaf_socket_gets_what_was_sent_once_it_hears_again() -> None:
    ours, theirs = connected()
    with ours, theirs:
        with deaf(ours):
            theirs.sendall(b"x")
            with pytest.raises(BlockingIOError):
                ours.recv(1, socket.MSG_DONTWAIT)
        assert ours.recv(1) == b"x"


def test_a_matrix_says_first_that_no_order_was_lost_unreported(tmp_path: Path) -> None:
    words = ("--transports", "zeromq", "--faults", "engine-kill,connection-reset", "--results", tmp_path)
    said = exchange(*QUICK, *words)
    assert said.code == 0, said.err
    record = said.record
    assert record["status"] == "complete"
    killed, reset = record["cells"]
    assert (killed["said"], killed["exit_code"]) == ("the engine was killed by SIGKILL", 1)
    assert "closed the connection" in reset["said"]
    for cell in (killed, reset):
        assert cell["orders"]["sent"] >= cell["orders"]["answered"] > 0
        assert (cell["orders"]["unreported"], cell["orders"]["doubled"], cell["orders"]["reordered"]) == (0, 0, 0)
        assert cell["without_service_s"] > 0
        assert cell["timeline"]
    page = (tmp_path / "it" / "faults.html").read_text()
    assert "2 cells: no order was lost unreported" in page
    assert page.count("<svg") == 2
    shown = exchange("results", "show", "it", "--results", tmp_path)
    assert shown.out.startswith("2 cells: no order was lost unreported\n")
    assert exchange("results", "diff", "it", "it", "--results", tmp_path).code == 0
    assert "faults" in exchange("results", "list", "--results", tmp_path).out


def test_a_loss_that_nobody_was_told_of_comes_first_and_fails_the_matrix() -> None:
    orders = {"sent": 10, "answered": 4, "lost": 6, "doubled": 0, "reordered": 0, "unreported": 6}
    cell = {"over": "tcp", "hangs": False, "came_back": False, "orders": orders}
    record = {"status": "complete", "planned_cells": 2, "cells": [cell, {"over": "tcp", "skipped": "no"}]}
    assert answer(record)[0] == "1 cell: 6 orders unreported in 1 cell"
    assert fails(record)
    orders["unreported"] = 0
    assert (answer(record)[0], fails(record)) == ("1 cell: no order was lost unreported", False)
    assert fails(record | {"status": "interrupted"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--faults", "engine-klil"), "'engine-klil' is none; there are gateway-kill"),
        (("--transports", "memory"), "'memory' has no connections that faults know of"),
        (("--transports", "amqp", "--delivery", "sure"), "'sure' is none; there are lossy"),
    ],
)
def test_a_word_that_no_matrix_has_is_named(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    found = exchange("faults", *words, "--results", tmp_path)
    assert (found.code, said in found.err) == (2, True), found.err
    assert not list(tmp_path.iterdir())


def test_the_list_has_every_fault_with_what_it_does() -> None:
    said = exchange("faults", "--list").out.splitlines()
    assert [line.split()[0] for line in said] == list(FAULTS)


@pytest.mark.long
@pytest.mark.parametrize("transport", ["zeromq", "tcp", "amqp"])
def test_no_fault_loses_an_order_that_the_record_does_not_tell_of(transport: str, tmp_path: Path) -> None:
    if transport == "amqp":
        need_rabbitmq()
    said = exchange(*QUICK, "--transports", transport, "--results", tmp_path)
    record = said.record
    assert [cell["run"] for cell in record["cells"] if "skipped" in cell] == []
    assert [cell["run"] for cell in record["cells"] if cell["hangs"] or cell["orders"]["unreported"]] == []
    assert said.code == 0
