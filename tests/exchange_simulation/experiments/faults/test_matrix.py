"""`exchange faults`: real runs with real faults, and the record, page and errors of a matrix."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.experiments.faults.injection import DELAY_US, FAULTS, disconnect, dropping
from exchange_simulation.experiments.faults.load import FaultLoad
from exchange_simulation.experiments.faults.matrix import measured_matrix, planned
from exchange_simulation.launching.errors import UserError
from exchange_simulation.reports.faults.page import FILE
from exchange_simulation.reports.faults.table import answer, cell_of, cell_summary, fails, measured_cells
from tests.broker import need_rabbitmq
from tests.exchange_command import exchange, exchange_in_process
from tests.machine import PATIENCE_S, lacks
from transports.sockets import counters

QUICK = ("faults", "--quick", "--json", "--name", "it")


def connected_sockets() -> tuple[socket.socket, socket.socket]:
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        return client, listener.accept()[0]


def test_a_disconnected_socket_resets_its_peer() -> None:
    ours, theirs = connected_sockets()
    with ours, theirs:
        disconnect(ours)
        with pytest.raises(ConnectionResetError):
            theirs.recv(1)


def test_a_socket_that_dropped_packets_gets_them_later() -> None:
    ours, theirs = connected_sockets()
    with ours, theirs:
        with dropping(ours, 1.0):
            theirs.sendall(b"x")
            with pytest.raises(BlockingIOError):
                ours.recv(1, socket.MSG_DONTWAIT)
        assert ours.recv(1) == b"x"


def test_a_matrix_that_is_interrupted_while_a_host_s_clock_is_asked_has_a_record_and_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a signal before the first cell left an empty folder."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("exchange_simulation.experiments.faults.matrix.clock_of_gateway", interrupted)
    plan = planned(["tcp"], ["lossy"], ["engine-kill"], FaultLoad(), [])
    measured = measured_matrix(plan, str(tmp_path), "first")
    assert (measured.record["status"], measured.record["cells"]) == ("interrupted", [])
    assert (measured.folder / FILE).exists()
    assert measured.page.exists()


def test_a_matrix_answers_first_whether_lost_orders_are_in_the_records(tmp_path: Path) -> None:
    options = ("--transports", "zeromq", "--faults", "engine-kill,connection-reset", "--results", tmp_path)
    finished = exchange_in_process(*QUICK, *options)
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["status"] == "complete"
    killed, reset = record["cells"]
    assert killed["said"] == "the engine was killed by SIGKILL"
    assert killed["exit_code"] == 1
    assert "closed the connection" in reset["said"]
    for cell in (killed, reset):
        orders = cell["orders"]
        assert orders["sent"] >= orders["answered"] > 0
        assert orders["unreported"] == 0
        assert orders["doubled"] == 0
        assert orders["reordered"] == 0
        assert cell["without_service_s"] > 0
        assert cell["timeline"]
    page = (tmp_path / "it" / "faults.html").read_text()
    assert page.count("<svg") == 2
    shown = exchange("results", "show", "it", "--results", tmp_path)
    first_line = shown.out.splitlines()[0]
    assert re.fullmatch(r"\d+ orders? (was|were) lost in [12] of 2 runs, all counted in the records", first_line)
    assert first_line in page
    assert exchange("results", "diff", "it", "it", "--results", tmp_path).code == 0
    assert "what the run said" in shown.out
    assert "faults" in exchange("results", "list", "--results", tmp_path).out


def test_a_socket_that_drops_a_tenth_of_packets_still_receives_all() -> None:
    """The chance that the kernel drops none of 200 packets is 10^-9."""
    ours, theirs = connected_sockets()
    with ours, theirs:
        ours.settimeout(PATIENCE_S)
        ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with dropping(theirs, 0.1):
            for _ in range(200):
                ours.sendall(b"x")
                assert theirs.recv(1) == b"x"
        assert counters(ours)["retransmits"] > 0


def test_a_fault_that_a_transport_cannot_have_is_skipped_with_the_reason(tmp_path: Path) -> None:
    options = ("--transports", "zeromq+ipc", "--faults", "connection-reset", "--results", tmp_path)
    finished = exchange_in_process(*QUICK, *options)
    (reset,) = finished.record["cells"]
    assert reset["skipped"] == "zeromq+ipc has no TCP connection to break"
    assert cell_of(finished.record, "connection-reset", "zeromq+ipc") == reset
    assert cell_summary(reset) == "not possible here"


def test_a_run_that_does_not_start_is_skipped_with_the_reason(tmp_path: Path) -> None:
    options = ("--transports", "tcp", "--faults", "engine-kill", "--results", tmp_path)
    finished = exchange_in_process(*QUICK, *options, "--", "--cpus", "gateway=4000")
    (cell,) = finished.record["cells"]
    assert "the run did not start: " in cell["skipped"]
    assert "cannot stay on processor 4000" in cell["skipped"]


@pytest.mark.long
def test_a_broker_out_of_memory_costs_time_and_no_order(tmp_path: Path) -> None:
    need_rabbitmq()
    finished = exchange(*QUICK, "--transports", "amqp", "--faults", "broker-alarm", "--results", tmp_path)
    (alarm,) = finished.record["cells"]
    assert alarm["orders"]["lost"] == 0
    assert alarm["orders"]["unreported"] == 0
    assert alarm["without_service_s"] > 0.5, "the broker blocks publishers for a second"


@pytest.mark.long
def test_a_slow_network_costs_time_and_no_order(tmp_path: Path) -> None:
    finished = exchange(*QUICK, "--transports", "tcp", "--faults", "delay", "--results", tmp_path)
    (cell,) = finished.record["cells"]
    if "skipped" in cell:
        lacks(cell["skipped"])
    assert cell["orders"]["lost"] == 0
    assert cell["p99_us"]["during"] >= 2 * DELAY_US, "an order and its answer are both delayed"


SKIPPED_CELL = {"over": "tcp", "skipped": "no"}


def matrix_with_loss(unreported: int, status: str = "complete") -> dict[str, Any]:
    """The record of a matrix with one run, which lost 6 orders, and one skipped cell."""
    orders = {"sent": 10, "answered": 4, "lost": 6, "doubled": 0, "reordered": 0, "unreported": unreported}
    cell = {"over": "tcp", "hangs": False, "came_back": False, "orders": orders}
    return {"status": status, "planned_cells": 2, "cells": [cell, SKIPPED_CELL]}


def test_an_unreported_loss_is_named_first_and_fails_the_matrix() -> None:
    record = matrix_with_loss(unreported=6)
    first_line = answer(record)[0]
    assert first_line == "6 orders were lost in 1 of 1 run: 6 orders MISSING FROM THE RECORDS; 1 not possible here"
    assert fails(record)


def test_a_loss_that_the_records_count_does_not_fail_the_matrix() -> None:
    record = matrix_with_loss(unreported=0)
    first_line = answer(record)[0]
    assert first_line == "6 orders were lost in 1 of 1 run, all counted in the records; 1 not possible here"
    assert not fails(record)


def test_an_interrupted_matrix_fails() -> None:
    assert fails(matrix_with_loss(unreported=0, status="interrupted"))


def test_a_matrix_in_which_no_fault_could_be_tried_fails() -> None:
    record = {"status": "complete", "planned_cells": 1, "cells": [SKIPPED_CELL]}
    lines = answer(record)
    assert lines[0] == "no fault could be tried; 1 not possible here"
    assert lines[1] == "over tcp, no fault could be tried: the details say why"
    assert fails(record)


@pytest.mark.parametrize(
    ("transport", "delivery", "fault", "message"),
    [
        ("tcp", "lossy", "engine-klil", "'engine-klil' is no fault; there are gateway-kill"),
        ("tcp", "lossy", "engine-kil", "; did you mean 'engine-kill'?"),
        ("memory", "lossy", "engine-kill", "'memory' joins threads of one process, and none of them can be broken"),
        ("carrier-pigeon", "lossy", "engine-kill", "--transports: unknown transport 'carrier-pigeon'"),
        ("amqp", "sure", "engine-kill", "'sure' is no guarantee; there are lossy"),
        ("amqp", "durabl", "engine-kill", "; did you mean 'durable'?"),
    ],
)
def test_an_unknown_word_is_named_with_the_known_ones(transport: str, delivery: str, fault: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        planned([transport], [delivery], [fault], FaultLoad(), [])


@pytest.mark.parametrize(
    ("transports", "faults", "message"),
    [
        (["tcp"], [], "--faults is empty: give one or more, with commas between them"),
        (["tcp"], ["engine-kill", "engine-kill"], "--faults is 'engine-kill,engine-kill', which has engine-kill twice"),
        (["tcp", "tcp"], ["engine-kill"], "--transports is 'tcp,tcp'"),
        (["tcp", "zeromq"], ["broker-kill"], "--faults: broker-kill: there is no broker over tcp, zeromq"),
    ],
)
def test_empty_lists_repeated_words_and_an_empty_matrix_are_refused(
    transports: list[str], faults: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        planned(transports, ["lossy"], faults, FaultLoad(), [])


def test_options_for_every_run_change_the_planned_load() -> None:
    options = ["--recover", "--cpus", "gateway=1", "--timeout", "20", "--seconds", "9", "--rate", "500", "--seed", "7"]
    plan = planned(["tcp"], ["lossy"], ["engine-kill"], FaultLoad(), options)
    assert plan.load == FaultLoad(rate_per_s=500.0, seconds=9.0, timeout_s=20.0, seed=7)


def test_other_options_for_every_run_leave_the_load_as_it_is() -> None:
    plan = planned(["tcp"], ["lossy"], ["engine-kill"], FaultLoad(seconds=4.0), ["--recover"])
    assert plan.load == FaultLoad(seconds=4.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--orders", "10"], "a run of --orders may end before that: give --duration in its place"),
        (["--rate", "max"], "and --rate is max: give orders a second"),
        (["--duration", "2"], "and --duration is 2: give a longer --duration"),
    ],
)
def test_a_load_that_may_end_before_the_fault_is_refused(options: list[str], message: str) -> None:
    with pytest.raises(UserError, match=f"the fault comes after 2 s.*{message}"):
        planned(["tcp"], ["lossy"], ["engine-kill"], FaultLoad(), options)


def test_a_typed_guarantee_that_no_transport_has_is_refused(tmp_path: Path) -> None:
    finished = exchange_in_process(
        "faults", "--transports", "tcp,zeromq", "--delivery", "durable,acked", "--results", tmp_path
    )
    assert finished.code == 2
    assert "--delivery is durable,acked, which tcp, zeromq cannot have: use amqp or amqps" in finished.err


def test_the_option_list_prints_every_fault() -> None:
    lines = exchange_in_process("faults", "--list").out.splitlines()
    assert [line.split()[0] for line in lines] == list(FAULTS)


@pytest.mark.long
@pytest.mark.parametrize("transport", ["zeromq", "zeromq+ipc", "tcp", "amqp"])
def test_no_fault_loses_an_order_that_the_record_does_not_show(transport: str, tmp_path: Path) -> None:
    if transport == "amqp":
        need_rabbitmq()
    finished = exchange(*QUICK, "--transports", transport, "--results", tmp_path)
    record = finished.record
    skipped = [cell["fault"] for cell in record["cells"] if "skipped" in cell]
    tcp_faults = [name for name, fault in FAULTS.items() if fault.needs_tcp]
    assert skipped == (tcp_faults if transport == "zeromq+ipc" else [])
    for cell in measured_cells(record):
        assert not cell["hangs"], cell["run"]
        assert cell["orders"]["unreported"] == 0, cell["run"]
    assert finished.code == 0


def test_a_transport_with_options_has_cells_and_folders_of_its_own() -> None:
    transports = ["redis?kind=stream", "nats?delivery=durable&sync=always"]
    plan = planned(transports, ["lossy"], ["engine-kill", "broker-kill"], FaultLoad(), ())
    assert [cell.over for cell in plan.cells] == [transport for transport in transports for _ in range(2)]
    assert [cell.name for cell in plan.cells[1:3]] == [
        "broker-kill-redis-kind-stream",
        "engine-kill-nats-delivery-durable-sync-always",
    ]


@pytest.mark.parametrize(
    ("transport", "sentence"),
    [
        ("redis?kind=list", "--transports: redis.*: kind is 'list'; it takes pubsub, stream"),
        ("nats?delivery=acked", "--transports: nats.*: delivery is 'acked'; it takes lossy, durable"),
        ("nats?durable=on", "--transports: nats.*: 'durable' is no option of nats"),
        ("nats://127.0.0.1:4222", "--transports: nats://127.0.0.1:4222 names a place; say nats alone"),
    ],
)
def test_a_transport_with_a_mistake_is_refused_before_anything_runs(transport: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        planned([transport], ["lossy"], ["engine-kill"], FaultLoad(), ())
