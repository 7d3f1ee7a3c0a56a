"""`python -m benchmarks`: what it measures, and what its table says."""

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
def test_each_name_is_a_benchmark(name: str) -> None:
    """`make bench` measured for minutes, came to a module without rows, and printed nothing."""
    assert callable(importlib.import_module(f"benchmarks.{name}").rows)


def made_up(rows: Iterator[BenchmarkRow], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit code and output of the benchmarks `amqp`, which has these rows, and `secure`, which has one."""
    of = {
        "benchmarks.amqp": rows,
        "benchmarks.secure": iter([BenchmarkRow("fast", "slow", "/s", [3.0], [1.0], reach=2.0)]),
    }
    monkeypatch.setattr(table.importlib, "import_module", lambda name: SimpleNamespace(rows=lambda _: of[name]))
    done = CliRunner().invoke(table.main, ["amqp", "secure"])
    return done.exit_code, " ".join(done.output.split())


def test_a_benchmark_that_fails_costs_its_own_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> Iterator[BenchmarkRow]:
        yield BenchmarkRow("first", "slow", "/s", [2.0, 4.0], [1.0, 1.0])
        raise RuntimeError("no broker")

    code, said = made_up(rows(), monkeypatch)
    assert code == 1
    assert "amqp first slow 2 3 /s 1 3.00 2.00..4.00" in said
    assert "amqp failed: see above missed" in said
    assert "secure fast slow 3 /s 1 3.00 3.00..3.00 >= 2" in said


@pytest.mark.parametrize(("ours", "target", "code"), [(1.5, "missed <= 1.3", 1), (1.2, " <= 1.3", 0)])
def test_a_missed_target_is_said_in_words(ours: float, target: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = made_up(iter([Cost("p99", "C", "us", [ours], [1.0], reach=1.3, aim=1.0)]), monkeypatch)
    assert (found, f"{target} 1" in said, "missed" in said) == (code, True, code == 1)


def test_noise_beside_the_reference_counts_as_that_beside_ours() -> None:
    quiet, busy = ({"noise": {"share_of_all_cpus": share}} for share in (0.0, 0.2))
    assert [RunPair(*both).is_noisy for both in ((quiet, quiet), (busy, quiet), (quiet, busy), (quiet, None))] == [
        False,
        True,
        True,
        False,
    ]
