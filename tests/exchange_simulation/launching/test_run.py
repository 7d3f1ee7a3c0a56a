"""A run of the whole exchange, as its user sees it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from exchange.messages import LAYOUTS, Order
from exchange.settings import RunSettings
from exchange_simulation.launching.lineup import READY_S
from exchange_simulation.launching.recorded_streams import open_streams
from exchange_simulation.launching.services import open_gateway
from tests.exchange_command import (
    ORDERS,
    REFERENCE_RUN,
    VALID_STATUSES,
    exchange,
    match_in_process,
    run_exchange,
    run_exchange_in_process,
)
from transports.registry import listen
from transports.tcp import link

ORDER_BYTES = LAYOUTS[Order].size
PLAIN = pytest.param("zeromq?calls=plain", marks=pytest.mark.long)
TCP = pytest.param("tcp", marks=pytest.mark.long)  # the test of Nagle's algorithm, below, covers it
IPC = pytest.param("zeromq+ipc", marks=pytest.mark.long)  # the links of ipc have their own tests
ZEROMQ = pytest.param("zeromq", marks=pytest.mark.long)  # test_pairs.py covers it, with two pairs
TRANSPORTS = [ZEROMQ, IPC, "zeromq+inproc", TCP, "memory", PLAIN, "shm", "nng"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_same_seed_gives_the_same_streams_on_every_transport(
    transport: str, tmp_path: Path, match_record: dict[str, object]
) -> None:
    record = record_of(tmp_path, "--transport", transport, *REFERENCE_RUN)
    assert record["checksums"] == match_record["checksums"]


def record_of(results: Path, *words: object) -> dict[str, Any]:
    """Run to a complete end and return the record. A run in threads is made in this process."""
    is_run_in_threads = "memory" in words or "zeromq+inproc" in words
    finished = run_exchange_in_process(results, *words) if is_run_in_threads else run_exchange(results, *words)
    assert finished.code == 0, finished.err
    assert finished.record["status"] == "complete"
    return finished.record


def test_nagle_at_all_roles_does_not_change_the_streams(tmp_path: Path, match_record: dict[str, object]) -> None:
    record = record_of(tmp_path, "--transport", "tcp", "--nagle", "all", *REFERENCE_RUN)
    assert record["checksums"] == match_record["checksums"]
    assert record["settings"]["nagle"] == ["gateway", "engine", "reporter"]
    assert {end["tcp_nodelay"] for end in record["sockets"]} == {False}


@pytest.mark.parametrize(
    "transport",
    ["zeromq", pytest.param("tcp", marks=pytest.mark.long), pytest.param("amqp", marks=pytest.mark.long)],
)
def test_keys_and_simplex_connections_leave_the_streams_the_same(
    transport: str, keys: Path, tmp_path: Path, match_record: dict[str, object]
) -> None:
    """The record has the settings."""
    finished = run_exchange(
        tmp_path, "--transport", transport, "--secure", keys, "--topology", "simplex", *REFERENCE_RUN
    )
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["status"] == "complete"
    assert record["checksums"] == match_record["checksums"]
    assert f"keys={keys}" in record["settings"]["url"]
    assert record["settings"]["topology"] == "simplex"
    ends = [end for end in record["sockets"] if end["component"] == "gateway"]
    assert len({end["local"] for end in ends}) == 2
    orders_ends = [end for end in ends if end["bytes_out"] > ORDER_BYTES * ORDERS / 2]
    assert len(ends) == 2
    assert len(orders_ends) == 1, "orders leave on one of the two connections"
    (folder,) = tmp_path.iterdir()
    assert f"complete: {transport} encrypted as fast" in exchange("report", folder, "--no-spark").out


@pytest.mark.parametrize("packing", [3, pytest.param(64, marks=pytest.mark.long)])
def test_packing_changes_the_messages_and_not_the_streams(
    packing: int, tmp_path: Path, match_record: dict[str, object]
) -> None:
    finished = run_exchange_in_process(tmp_path, *REFERENCE_RUN, "--packing", packing)
    assert finished.record["status"] == "complete"
    assert finished.record["checksums"] == match_record["checksums"]


def test_a_record_counts_what_was_sent_and_received(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--rate", 8000, "--orders", 8000, "--sampling-interval", 1000).record
    counts = record["counts"]
    assert counts["orders_sent"] == 8000
    assert counts["orders_received"] == 8000
    assert counts["orders_answered"] == 8000
    assert counts["answers_sent"] == counts["answers_received"]
    answers_by_kind = [counts[kind] for kind in ("trades", "confirmations", "quotes", "rejections")]
    assert counts["answers_sent"] == sum(answers_by_kind)
    assert counts["statistics_sent"] == counts["statistics_received"]
    assert counts["statistics_received"] > 0
    assert counts["samples"] == 8


def test_analysis_leaves_the_last_order_out_and_says_so(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--rate", 8000, "--orders", 4000).record
    assert record["completion_us"]["handed_over"]["count"] == 3999
    assert record["completion_us"]["due"]["count"] == 3999
    assert "the last order" in record["analysis"]["left_out"]


def test_a_warm_up_is_left_out_of_the_figures_and_kept_in_the_counts(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--rate", 2000, "--orders", 4000, "--warm-up", 1).record
    measured = record["completion_us"]["due"]["count"]
    assert 1900 <= measured < 3999, "2000, and the orders that the first second left unanswered"
    assert record["counts"]["orders_answered"] == 4000


def test_rate_max_has_no_schedule_and_so_no_lag_and_is_never_saturated(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--rate", "max", "--orders", 50_000).record
    assert record["status"] == "complete"
    assert record["settings"]["window"] == 16_384
    assert record["rates"]["offered_orders_per_s"] is None
    assert record["lag_us"] == {}
    assert list(record["completion_us"]) == ["handed_over"]


def test_a_rate_too_high_to_keep_is_saturated_with_exit_code_0(tmp_path: Path) -> None:
    finished = run_exchange_in_process(tmp_path, "--rate", 50_000_000, "--orders", 500_000)
    assert finished.code == 0
    assert finished.record["status"] == "saturated"
    assert "offered orders/s were achieved" in finished.record["reasons"][0]


def test_a_duration_at_a_rate_is_a_number_of_orders(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--rate", 2000, "--duration", 0.5).record
    assert record["status"] in VALID_STATUSES
    assert record["counts"]["orders_sent"] == 1000


def test_a_duration_without_a_rate_ends_the_run_in_band(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--rate", "max", "--duration", 0.5).record
    assert record["status"] in VALID_STATUSES, "the run ended by itself"
    assert record["counts"]["orders_sent"] == record["counts"]["orders_received"]


def test_recorded_streams_replay_to_the_same_answers(tmp_path: Path) -> None:
    record = run_exchange_in_process(
        tmp_path, "--rate", "max", "--orders", ORDERS, "--record", "--name", "taped"
    ).record
    taped = tmp_path / "taped"
    again = match_in_process(taped / "orders.bin", tmp_path / "again.bin")
    assert again["checksums"] == record["checksums"]
    assert (tmp_path / "again.bin").read_bytes() == (taped / "answers.bin").read_bytes()


def test_orders_that_the_book_cannot_take_are_rejected_one_by_one(tmp_path: Path) -> None:
    record = run_exchange_in_process(tmp_path, "--rate", "max", "--orders", 5000, "--prices", "990..1009").record
    counts = record["counts"]
    assert 2000 < counts["rejections"] < 3000
    assert counts["orders_answered"] == 5000


def test_policies_and_price_ranges_reach_the_engine(tmp_path: Path) -> None:
    exact = run_exchange_in_process(tmp_path, "--rate", "max", "--orders", 20_000, "--policy", "exact-price").record
    wide = run_exchange_in_process(
        tmp_path, "--rate", "max", "--orders", 20_000, "--prices", "1..65534", "--max-price", 65534
    ).record
    assert exact["counts"]["answers_sent"] / 20_000 == pytest.approx(1.92, rel=0.01)  # 1.98 over 1,000,000
    assert exact["status"] == "complete"
    assert wide["status"] == "complete"
    assert wide["counts"]["rejections"] == 0


def test_one_order_is_a_run(tmp_path: Path) -> None:
    finished = run_exchange_in_process(tmp_path, "--rate", 0.5, "--orders", 1)
    assert finished.code == 0
    assert finished.record["counts"]["orders_answered"] == 1


@pytest.mark.parametrize("transport", ["zeromq", pytest.param("tcp", marks=pytest.mark.long)])
def test_a_run_leaves_record_spool_and_page_with_settings_as_given(transport: str, tmp_path: Path) -> None:
    """The options reach all components."""
    orders = 1000
    words = ("--json", "-v", "--no-spark", "--results", tmp_path, "--name", "here", "--rate", 2000, "--orders", orders)
    processors = ("--cpus", "gateway=0,engine=0,reporter=0")
    finished = exchange("run", *words, "--transport", transport, "--nagle", "engine", *processors)
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"run.json", "report.html", "spool"}
    assert all(path.suffix == ".jsonl" for path in (tmp_path / "here" / "spool").iterdir())
    assert finished.out.encode() == (tmp_path / "here" / "run.json").read_bytes()
    record = finished.record
    assert record["status"] in VALID_STATUSES
    assert record["settings"]["cpus"] == {"gateway": 0, "engine": 0, "reporter": 0}
    assert "127.0.0.1" in record["settings"]["url"]
    assert record["settings"]["nagle"] == ["engine"]
    nodelay_of_ends = [(end["component"], end["tcp_nodelay"]) for end in record["sockets"]]
    assert nodelay_of_ends == [("gateway", True), ("engine", False), ("reporter", True), ("reporter", True)]
    started = [line.partition(":")[0] for line in finished.err.splitlines() if line.startswith("starting ")]
    assert sorted(started) == ["starting engine", "starting gateway", "starting reporter"]
    assert f"exchange gateway --engine {record['settings']['url']} " in finished.err
    gateway, engine, *_ = record["sockets"]
    assert gateway["bytes_out"] >= orders * ORDER_BYTES
    assert gateway["segments_out"] == pytest.approx(engine["segments_in"], rel=0.1)


def test_a_launched_gateway_waits_for_an_engine_slow_to_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A gateway waits longer for its engine than its timeout."""
    settings = RunSettings(transport="tcp", timeout_s=0.1)
    connect_socket = link.connect_socket
    refused_until_s = time.monotonic() + 0.3

    def refuse_at_first(*arguments: Any) -> Any:
        if time.monotonic() > refused_until_s:
            return connect_socket(*arguments)
        raise ConnectionRefusedError

    monkeypatch.setattr(link, "connect_socket", refuse_at_first)
    with closing(listen("tcp://127.0.0.1:0", "token")) as listener, open_streams(tmp_path, settings) as streams:
        open_gateway("late", listener.url, listener.url, settings, streams, patience_s=READY_S).close()
