"""`python -m benchmarks`: its benchmarks, and its table."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as table
from benchmarks.comparison import BenchmarkRow, Cost
from benchmarks.exchange import RunPair


@pytest.mark.parametrize("name", table.BENCHMARKS)
def test_each_name_is_a_module_with_rows(name: str) -> None:
    """Regression: after minutes of measuring, `make bench` met a module without rows, and printed nothing."""
    assert callable(importlib.import_module(f"benchmarks.{name}").rows)


def run_benchmarks(rows: Iterator[BenchmarkRow], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run `amqp` with these rows, and `secure` with one row of its own; returns exit code and output."""
    rows_by_module = {
        "benchmarks.amqp": rows,
        "benchmarks.secure": iter([BenchmarkRow("fast", "slow", "/s", [3.0], [1.0], required=2.0)]),
    }
    monkeypatch.setattr(
        table.importlib, "import_module", lambda name: SimpleNamespace(rows=lambda _: rows_by_module[name])
    )
    finished = CliRunner().invoke(table.main, ["amqp", "secure"])
    return finished.exit_code, " ".join(finished.output.split())


def test_a_failed_benchmark_leaves_other_rows_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> Iterator[BenchmarkRow]:
        yield BenchmarkRow("first", "slow", "/s", [2.0, 4.0], [1.0, 1.0])
        raise RuntimeError("no broker")

    code, output = run_benchmarks(rows(), monkeypatch)

    assert code == 1
    assert "amqp first slow 2 3 /s 1 3.00 2.00..4.00" in output
    assert "amqp failed: see above missed" in output
    assert "secure fast slow 3 /s 1 3.00 3.00..3.00 >= 2" in output


def test_a_missed_target_is_named_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    missed = Cost("p99", "C", "us", [1.5], [1.0], required=1.3, hoped_for=1.0)
    code, output = run_benchmarks(iter([missed]), monkeypatch)
    assert code == 1
    assert "missed <= 1.3 1" in output


def test_a_reached_target_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = Cost("p99", "C", "us", [1.2], [1.0], required=1.3, hoped_for=1.0)
    code, output = run_benchmarks(iter([reached]), monkeypatch)
    assert code == 0
    assert " <= 1.3 1" in output
    assert "missed" not in output


def test_a_round_is_noisy_if_one_of_its_runs_is() -> None:
    quiet = {"noise": {"share_of_all_cpus": 0.0}}
    noisy = {"noise": {"share_of_all_cpus": 0.2}}
    assert RunPair(noisy, quiet).is_noisy
    assert RunPair(quiet, noisy).is_noisy
    assert not RunPair(quiet, quiet).is_noisy
    assert not RunPair(quiet, None).is_noisy
