"""`exchange results export`: measured order latencies in the layout that hftbacktest reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exchange.records import MATCHED, SAMPLE, RecordWriter
from exchange_simulation.reports.run.hftbacktest import order_latencies
from tests.exchange_command import exchange_in_process, run_exchange, run_exchange_in_process
from tests.exchange_simulation.cli.results.kept_folders import put_run

WALL_NS = 1_700_000_000_000_000_000
MONOTONIC_NS = 5_000_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    words = ("--orders", 3_000, "--rate", 3_000, "--sampling-interval", 10, "--name", "first")
    assert run_exchange(results, "--transport", "zeromq", *words).code == 0
    return results


def test_a_run_has_the_three_times_of_sampled_orders(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "latency.npz"
    words = ("results", "export", "first", "--results", results, "--format", "hftbacktest", "--output", path)
    outcome = exchange_in_process(*words)
    assert outcome.code == 0, outcome.err
    with np.load(path) as content:
        rows = content["data"]
    assert rows.dtype == [(name, "<i8") for name in ("req_ts", "exch_ts", "resp_ts", "_padding")]
    assert len(rows) > 30
    assert f"{len(rows)} orders of the " in outcome.out
    assert (rows["req_ts"] <= rows["exch_ts"]).all()
    assert (rows["exch_ts"] <= rows["resp_ts"]).all()
    assert (np.diff(rows["req_ts"]) >= 0).all()
    written_s = (results / "first" / "run.json").stat().st_mtime
    assert 0 <= written_s - rows["req_ts"][0] / 1e9 < 600


def written_spool(folder: Path, *lines: tuple[str, str, dict[str, int]]) -> Path:
    (folder / "spool").mkdir(parents=True)
    content = [
        RecordWriter(1, source).document(kind, payload, (WALL_NS, MONOTONIC_NS)) for source, kind, payload in lines
    ]
    (folder / "spool" / "000001.jsonl").write_bytes(b"\n".join(content) + b"\n")
    return folder


def sample(order_id: int, handed_over_ns: int, answered_ns: int) -> dict[str, int]:
    return {"id": order_id, "due_ns": 0, "handed_over_ns": handed_over_ns, "answered_ns": answered_ns}


def test_times_are_joined_by_pair_and_order_and_become_wall_times(tmp_path: Path) -> None:
    folder = written_spool(
        tmp_path / "run",
        ("engine", MATCHED, {"id": 10, "matched_ns": 130}),
        ("gateway", SAMPLE, sample(10, 100, 150)),
        ("gateway.2", SAMPLE, sample(10, 90, 150)),
        ("engine.2", MATCHED, {"id": 10, "matched_ns": 95}),
        ("gateway", SAMPLE, sample(20, 200, 250)),
        ("gateway", SAMPLE, sample(30, 300, 350)),
        ("engine", MATCHED, {"id": 30, "matched_ns": 351}),
    )
    latencies = order_latencies(folder)
    to_wall_ns = WALL_NS - MONOTONIC_NS
    assert [[int(time) - to_wall_ns for time in row.tolist()[:3]] for row in latencies.rows] == [
        [90, 95, 150],
        [100, 130, 150],
    ]
    assert (latencies.sampled, latencies.without_exchange_time, latencies.out_of_order) == (4, 1, 1)


@pytest.mark.parametrize(
    ("payload", "message"),
    [(sample(10, 100, 150), "none of its 1 sampled order has"), ({"id": 10}, "is damaged")],
)
def test_a_run_without_such_orders_is_refused(tmp_path: Path, payload: dict[str, int], message: str) -> None:
    written_spool(put_run(tmp_path, "run"), ("gateway", SAMPLE, payload))
    outcome = exchange_in_process("results", "export", "run", "--results", tmp_path, "--format", "hftbacktest")
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize("words", [("--gateways", 2), ("--engines", 2, "--instruments", 2)])
def test_a_run_of_several_gateways_or_engines_is_refused(tmp_path: Path, words: tuple[object, ...]) -> None:
    load = ("--transport", "memory", "--orders", 400, "--rate", 2_000, "--sampling-interval", 10, "--name", "market")
    run_exchange_in_process(tmp_path, *load, *words)
    outcome = exchange_in_process("results", "export", "market", "--results", tmp_path, "--format", "hftbacktest")
    assert outcome.code == 2
    assert "an engine reports its times by its own count of orders" in outcome.err
    assert "export a run of one gateway and one engine, or of --pairs" in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "is of one run: give its NAME"),
        (("first", "second"), "is of one run: give its NAME"),
        (("first", "--prometheus"), "--prometheus and --format are two forms"),
    ],
)
def test_words_that_contradict_each_other_are_refused(results: Path, words: tuple[str, ...], message: str) -> None:
    outcome = exchange_in_process("results", "export", *words, "--results", results, "--format", "hftbacktest")
    assert outcome.code == 2
    assert message in outcome.err
