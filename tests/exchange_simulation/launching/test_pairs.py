"""Runs of several pairs of a gateway and an engine, and of several reporters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from exchange.measurements import BUCKETS, CLOCKS, bucket_middle_ns
from exchange_simulation.cli.main import main
from exchange_simulation.launching.launch.watch import GatewayTotals
from gateway.seeded_orders import SeededOrders
from gateway.seeds import instrument_seed
from tests.exchange_command import (
    ORDERS,
    REFERENCE_RUN,
    VALID_STATUSES,
    match_in_process,
    run_exchange,
    run_exchange_in_process,
)

pytestmark = pytest.mark.xdist_group("pairs")

COUNTED = ("orders_sent", "orders_received", "answers_sent", "answers_received", "samples")


def spool(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("spool/*.jsonl") for line in path.read_text().splitlines()]


def percentile_us(folder: Path, clock: str, percent: float) -> float:
    """By numpy, over every completion of every pair, each at its bucket's middle."""
    counts = np.zeros(BUCKETS, np.int64)
    least = []
    most = []
    for payload in (record["payload"] for record in spool(folder) if record["kind"] == "completion"):
        if payload["clock"] == clock and not payload["last_order"]:
            counts[payload["bucket"]] += payload["bucket_count"]
            least.append(payload["min_ns"])
            most.append(payload["max_ns"])
    each = np.repeat(bucket_middle_ns(np.arange(BUCKETS)), counts)
    value_ns = np.percentile(each, percent, method="inverted_cdf")
    return float(np.clip(value_ns, min(least), max(most))) / 1e3


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Three pairs that report to two reporters: the folder, and its record."""
    results = tmp_path_factory.mktemp("three")
    words = ("--pairs", 3, "--reporters", 2, "--rate", 3000, "--orders", 4000, "--sampling-interval", 500)
    finished = run_exchange_in_process(results, *words, "--name", "run")
    assert finished.code == 0, finished.err
    return results / "run", finished.record


def test_totals_are_the_sums_of_the_pairs_each_of_which_has_all_orders(three: tuple[Path, dict[str, Any]]) -> None:
    _, record = three
    assert record["status"] in VALID_STATUSES, record["reasons"]
    assert [pair["counts"]["orders_answered"] for pair in record["pairs"]] == [4000] * 3
    for name in COUNTED:
        assert record["counts"][name] == sum(pair["counts"][name] for pair in record["pairs"])
    assert record["counts"]["samples"] == 24
    assert record["counts"]["statistics_sent"] == record["counts"]["statistics_received"]
    for stream in ("orders", "answers"):
        total = sum(int(pair["checksums"][stream], 16) for pair in record["pairs"]) % 2**64
        assert int(record["checksums"][stream], 16) == total
    assert len({pair["checksums"]["orders"] for pair in record["pairs"]}) == 3
    used = [pair["components"]["gateway"] for pair in record["pairs"]]
    assert record["components"]["gateway"]["cpu_s"] == pytest.approx(sum(each["cpu_s"] for each in used))
    assert record["components"]["gateway"]["max_rss_bytes"] == max(each["max_rss_bytes"] for each in used)


def test_the_settings_say_each_pair_s_rate_and_the_rates_that_of_all(three: tuple[Path, dict[str, Any]]) -> None:
    _, record = three
    assert record["settings"]["orders_per_s"] == 3000
    assert record["settings"]["orders"] == 4000
    assert record["rates"]["offered_orders_per_s"] == 9000
    assert record["rates"]["orders_per_s"] == pytest.approx(12_000 / record["duration_s"])
    assert record["duration_s"] >= max(pair["duration_s"] for pair in record["pairs"])


def test_the_first_pair_has_the_run_s_seed_and_others_their_own(
    three: tuple[Path, dict[str, Any]],
) -> None:
    """The others have the seeds of instruments."""
    _, record = three
    assert [pair["seed"] for pair in record["pairs"]] == [1, instrument_seed(1, 2), instrument_seed(1, 3)]


def test_the_run_s_completion_is_that_of_all_pairs_together(three: tuple[Path, dict[str, Any]]) -> None:
    folder, record = three
    figures = {**record["completion_us"], "lag": record["lag_us"]}
    for clock in CLOCKS:
        assert figures[clock]["count"] == 3 * 3999
        for name, percent in (("p50", 50), ("p99", 99), ("p999", 99.9)):
            assert figures[clock][name] == pytest.approx(percentile_us(folder, clock, percent), rel=1e-9)


def test_each_reporter_closes_files_of_its_own_with_a_record(
    three: tuple[Path, dict[str, Any]],
) -> None:
    folder, _ = three
    firsts = {path.name for path in folder.glob("spool/*000001.jsonl")}
    assert firsts == {"000001.jsonl", "2-000001.jsonl"}
    heard: dict[str, set[str]] = {"reporter": set(), "reporter.2": set()}
    for path in folder.glob("spool/*.jsonl"):
        who = "reporter.2" if path.name.startswith("2-") else "reporter"
        heard[who] |= {json.loads(line)["source"] for line in path.read_text().splitlines()}
    assert heard["reporter"] == {"reporter", "gateway", "engine", "gateway.3", "engine.3"}
    assert heard["reporter.2"] == {"reporter.2", "gateway.2", "engine.2"}
    ends = [(record["source"], record["payload"]["reporters"]) for record in spool(folder) if record["kind"] == "end"]
    assert sorted(ends) == [("reporter", 2), ("reporter.2", 2)]


def test_page_and_terminal_show_all_pairs_together_and_each_apart(
    three: tuple[Path, dict[str, Any]],
) -> None:
    folder, record = three
    finished = CliRunner().invoke(main, ["report", str(folder), "--no-spark"])
    assert finished.exit_code == 0, finished.output
    assert "memory, 3 pairs, each at 3,000 orders/s" in finished.output
    assert "12,000 orders sent and received" in finished.output
    page = (folder / "report.html").read_text()
    assert "12,000 orders over memory, 3 pairs, each at 3,000 orders/s" in page
    for pair in record["pairs"]:
        assert pair["checksums"]["orders"] in page
    listed = CliRunner().invoke(main, ["results", "list", "--json", "--results", str(folder.parent)])
    assert json.loads(listed.output)[0]["orders_per_s"] == [9000]


def test_pairs_are_processes_of_their_own_whose_recorded_streams_replay(
    tmp_path: Path, match_record: dict[str, object]
) -> None:
    finished = run_exchange(tmp_path, *REFERENCE_RUN, "--pairs", 2, "--reporters", 2, "--record", "--name", "taped")
    record = finished.record
    folder = tmp_path / "taped"
    assert finished.code == 0
    assert record["status"] == "complete", finished.err
    first, second = record["pairs"]
    assert first["checksums"] == match_record["checksums"]
    again = match_in_process(folder / "orders.2.bin", tmp_path / "again.bin")
    assert again["checksums"] == second["checksums"]
    assert (tmp_path / "again.bin").read_bytes() == (folder / "answers.2.bin").read_bytes()
    assert (folder / "orders.2.bin").stat().st_size == 10 * ORDERS
    ends = {end["component"] for end in record["sockets"]}
    assert ends == {"gateway", "engine", "gateway.2", "engine.2", "reporter", "reporter.2"}
    assert set(record["components"]) == {"gateway", "engine", "reporter"}
    of_its_seed = SeededOrders(second["seed"], (450, 549)).records(1, ORDERS)
    assert (folder / "orders.2.bin").read_bytes() == of_its_seed


def test_a_second_is_shown_once_all_gateways_have_reported_it() -> None:
    together = GatewayTotals(2)
    assert together.take("gateway", 10, 9) is None
    assert together.take("gateway.2", 20, 19) == (30, 28)


def test_a_gateway_that_is_silent_is_not_waited_for() -> None:
    together = GatewayTotals(2)
    assert together.take("gateway", 10, 9) is None
    assert together.take("gateway", 20, 18) == (20, 18)
    assert together.take("gateway.2", 5, 5) == (25, 23)


def test_while_one_gateway_is_silent_each_second_is_shown_once() -> None:
    together = GatewayTotals(3)
    is_shown = [together.take(name, 1, 1) is not None for name in ("gateway", "gateway.2") * 4]
    assert is_shown == [False, False, True, False, True, False, True, False]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pairs", 0), "--pairs is 0; allowed is a whole number from 1 to 16"),
        (("--pairs", 17), "--pairs is 17; allowed is a whole number from 1 to 16"),
        (("--reporters", 2), "--reporters is 2; allowed is a whole number from 1 to 1"),
        (("--pairs", 2, "--cpus", "gateway.3=0"), "--cpus is gateway.3; allowed is one of gateway, engine, reporter"),
        (("--pairs", 2, "--cpus", "reporter.2=0"), "--cpus is reporter.2; allowed is one of gateway, engine, reporter"),
        (("--pairs", 2, "--transport", "tcp://127.0.0.1:7000"), "tcp://127.0.0.1:7000 is one place, for one gateway"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(words: tuple[object, ...], message: str, tmp_path: Path) -> None:
    finished = run_exchange_in_process(tmp_path / "results", *words)
    assert finished.code == 2
    assert message in finished.err, finished.err
    assert not (tmp_path / "results").exists() or not list((tmp_path / "results").iterdir())


def test_a_tape_is_one_pair_s(tmp_path: Path) -> None:
    (tmp_path / "tape.bin").write_bytes(SeededOrders(1, (450, 549)).records(1, 10))
    finished = run_exchange_in_process(tmp_path / "results", "--tape", tmp_path / "tape.bin", "--pairs", 2)
    assert finished.code == 2
    assert "--pairs is 2; allowed is 1, where a tape is replayed" in finished.err
