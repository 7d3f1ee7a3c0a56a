"""`exchange faults`: real runs with real faults, and what is said of them."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from exchange_simulation.experiments.faults.cell import FaultLoad
from exchange_simulation.experiments.faults.injection import DELAY_US, FAULTS, disconnect, dropping
from exchange_simulation.experiments.faults.matrix import planned
from exchange_simulation.launching.errors import UserError
from exchange_simulation.reports.faults.table import answer, cell_of, fails, in_short, measured, show
from tests.broker import need_rabbitmq
from tests.exchange_command import exchange, exchange_in_process
from tests.machine import PATIENCE_S, lacks
from transports.sockets import counters

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


def test_a_socket_that_dropped_packets_gets_them_later() -> None:
    ours, theirs = connected()
    with ours, theirs:
        with dropping(ours, 1.0):
            theirs.sendall(b"x")
            with pytest.raises(BlockingIOError):
                ours.recv(1, socket.MSG_DONTWAIT)
        assert ours.recv(1) == b"x"


def test_a_matrix_says_first_that_no_order_was_lost_unreported(tmp_path: Path) -> None:
    words = ("--transports", "zeromq", "--faults", "engine-kill,connection-reset", "--results", tmp_path)
    said = exchange_in_process(*QUICK, *words)
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
    assert page.count("<svg") == 2
    shown = exchange("results", "show", "it", "--results", tmp_path)
    found = shown.out.splitlines()[0]
    assert re.fullmatch(r"\d+ orders? (was|were) lost in [12] of 2 runs, all counted in the records", found)
    assert found in page
    assert exchange("results", "diff", "it", "it", "--results", tmp_path).code == 0
    assert "what the run said" in shown.out
    assert "faults" in exchange("results", "list", "--results", tmp_path).out


def test_a_socket_that_drops_a_tenth_gets_all_in_the_end() -> None:
    """The kernel drops at least one of 200 packets, except in one try of 10^9."""
    ours, theirs = connected()
    with ours, theirs:
        ours.settimeout(PATIENCE_S)
        ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with dropping(theirs, 0.1):
            for _ in range(200):
                ours.sendall(b"x")
                assert theirs.recv(1) == b"x"
        assert counters(ours)["retransmits"] > 0


def test_any_transport_can_be_broken_and_what_it_lacks_is_said(tmp_path: Path) -> None:
    words = ("--transports", "zeromq+ipc", "--faults", "connection-reset", "--results", tmp_path)
    said = exchange_in_process(*QUICK, *words)
    (reset,) = said.record["cells"]
    assert reset["skipped"] == "zeromq+ipc has no TCP connection to break"
    assert cell_of(said.record, "connection-reset", "zeromq+ipc") == reset
    assert in_short(reset) == "not possible here"


def test_a_run_that_does_not_start_says_why(tmp_path: Path) -> None:
    words = ("--transports", "tcp", "--faults", "engine-kill", "--results", tmp_path, "--", "--cpus", "gateway=4000")
    (cell,) = exchange_in_process(*QUICK, *words).record["cells"]
    assert "the run did not start: " in cell["skipped"]
    assert "cannot stay on processor 4000" in cell["skipped"]


@pytest.mark.long
def test_a_broker_out_of_memory_costs_time_and_no_order(tmp_path: Path) -> None:
    need_rabbitmq()
    said = exchange(*QUICK, "--transports", "amqp", "--faults", "broker-alarm", "--results", tmp_path)
    (alarm,) = said.record["cells"]
    assert (alarm["orders"]["lost"], alarm["orders"]["unreported"]) == (0, 0)
    assert alarm["without_service_s"] > 0.5, "for a second the broker took nothing"


@pytest.mark.long
def test_a_slow_network_costs_time_and_no_order(tmp_path: Path) -> None:
    (cell,) = exchange(*QUICK, "--transports", "tcp", "--faults", "delay", "--results", tmp_path).record["cells"]
    if "skipped" in cell:
        lacks(cell["skipped"])
    assert cell["orders"]["lost"] == 0
    assert cell["p99_us"]["during"] >= 2 * DELAY_US, "there and back"


def test_a_loss_that_nobody_was_told_of_comes_first_and_fails_the_matrix() -> None:
    orders = {"sent": 10, "answered": 4, "lost": 6, "doubled": 0, "reordered": 0, "unreported": 6}
    cell = {"over": "tcp", "hangs": False, "came_back": False, "orders": orders}
    record = {"status": "complete", "planned_cells": 2, "cells": [cell, {"over": "tcp", "skipped": "no"}]}
    assert (
        answer(record)[0] == "6 orders were lost in 1 of 1 run: 6 orders MISSING FROM THE RECORDS; 1 not possible here"
    )
    assert fails(record)
    orders["unreported"] = 0
    assert (answer(record)[0], fails(record)) == (
        "6 orders were lost in 1 of 1 run, all counted in the records; 1 not possible here",
        False,
    )
    nothing = answer({**record, "cells": [{"over": "tcp", "skipped": "no"}]})
    assert nothing[0] == "no fault could be tried; 1 not possible here", "it said that no order was lost"
    assert nothing[1] == "over tcp, no fault could be tried: the details say why"
    assert fails({**record, "cells": [{"over": "tcp", "skipped": "no"}]})
    assert fails(record | {"status": "interrupted"})


def test_a_quiet_matrix_leaves_out_the_details(capsys: pytest.CaptureFixture[str]) -> None:
    show({"status": "complete", "planned_cells": 0, "cells": [], "faults": {}}, in_full=False)
    said = capsys.readouterr().out
    assert "A cell: orders lost" in said
    assert "what the run said" not in said


@pytest.mark.parametrize(
    ("transport", "delivery", "fault", "said"),
    [
        ("tcp", "lossy", "engine-klil", "'engine-klil' is no fault; there are gateway-kill"),
        ("tcp", "lossy", "engine-kil", "; did you mean 'engine-kill'?"),
        ("memory", "lossy", "engine-kill", "'memory' joins threads of one process, and none of them can be broken"),
        ("carrier-pigeon", "lossy", "engine-kill", "--transports: unknown transport 'carrier-pigeon'"),
        ("amqp", "sure", "engine-kill", "'sure' is no guarantee; there are lossy"),
        ("amqp", "durabl", "engine-kill", "; did you mean 'durable'?"),
    ],
)
def test_a_word_that_no_matrix_has_is_named(transport: str, delivery: str, fault: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        planned([transport], [delivery], [fault], FaultLoad(), [])


@pytest.mark.parametrize(
    ("transports", "faults", "said"),
    [
        (["tcp"], [], "--faults is empty: give one or more, with commas between them"),
        (["tcp"], ["engine-kill", "engine-kill"], "--faults is 'engine-kill,engine-kill', which has engine-kill twice"),
        (["tcp", "tcp"], ["engine-kill"], "--transports is 'tcp,tcp'"),
        (["tcp", "zeromq"], ["broker-kill"], "--faults: broker-kill: there is no broker over tcp, zeromq"),
    ],
)
def test_a_matrix_without_a_cell_or_with_one_twice_is_refused(transports: list[str], faults: list[str], said: str):
    with pytest.raises(UserError, match=said):
        planned(transports, ["lossy"], faults, FaultLoad(), [])


def test_words_for_every_run_are_those_of_the_record() -> None:
    words = ["--recover", "--cpus", "gateway=1", "--timeout", "20", "--seconds", "9", "--rate", "500", "--seed", "7"]
    load = planned(["tcp"], ["lossy"], ["engine-kill"], FaultLoad(), words).load
    assert load == FaultLoad(rate_per_s=500.0, seconds=9.0, timeout_s=20.0, seed=7), "a run of 9 s hung after 6"
    assert planned(["tcp"], ["lossy"], ["engine-kill"], FaultLoad(seconds=4.0), ["--recover"]).load == FaultLoad(
        seconds=4.0
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--orders", "10"], "a run of --orders may end before that: give --duration in its place"),
        (["--rate", "max"], "and --rate is max: give orders a second"),
        (["--duration", "2"], "and --duration is 2: give a longer --duration"),
    ],
)
def test_a_load_in_which_no_fault_has_its_time_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UserError, match=f"the fault comes after 2 s.*{said}"):
        planned(["tcp"], ["lossy"], ["engine-kill"], FaultLoad(), words)


def test_a_guarantee_that_no_transport_has_is_refused_where_it_is_typed(tmp_path: Path) -> None:
    said = exchange_in_process(
        "faults", "--transports", "tcp,zeromq", "--delivery", "durable,acked", "--results", tmp_path
    )
    assert said.code == 2
    assert "--delivery is durable,acked, which tcp, zeromq cannot have: use amqp or amqps" in said.err


def test_the_list_has_every_fault_with_what_it_does() -> None:
    said = exchange_in_process("faults", "--list").out.splitlines()
    assert [line.split()[0] for line in said] == list(FAULTS)


@pytest.mark.long
@pytest.mark.parametrize("transport", ["zeromq", "zeromq+ipc", "tcp", "amqp"])
def test_no_fault_loses_an_order_that_the_record_does_not_tell_of(transport: str, tmp_path: Path) -> None:
    if transport == "amqp":
        need_rabbitmq()
    said = exchange(*QUICK, "--transports", transport, "--results", tmp_path)
    record = said.record
    skipped = [cell["fault"] for cell in record["cells"] if "skipped" in cell]
    assert skipped == ([name for name, fault in FAULTS.items() if fault.needs_tcp] if "ipc" in transport else [])
    assert [cell["run"] for cell in measured(record) if cell["hangs"] or cell["orders"]["unreported"]] == []
    assert said.code == 0
