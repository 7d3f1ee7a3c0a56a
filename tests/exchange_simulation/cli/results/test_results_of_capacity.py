"""`exchange results` of a capacity's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from exchange.settings import RunSettings
from tests.exchange_simulation.cli.results.kept_folders import DAY, results
from tests.exchange_simulation.experiments.trials.sample_trials import HOST, VERSIONS


def put_capacity(results_folder: Path, name: str, orders_per_s: float | None = 61_234.0, **changed: Any) -> None:
    """A record of a capacity that was found, or, without `orders_per_s`, of one that was not."""
    if orders_per_s is None:
        estimate = None
    else:
        estimate = {"value": orders_per_s, "low": 0.9 * orders_per_s, "high": 1.1 * orders_per_s}
    record = {
        "schema": 1,
        "name": name,
        "status": "complete",
        "started_at": f"{DAY}:20+00:00",
        "objective": "p99 <= 1ms",
        "settings": RunSettings(transport="tcp").as_dict(),
        "search": {"repeats": 5},
        "flags": [],
        "capacity_orders_per_s": estimate,
        "ceiling_orders_per_s": 1e6,
        "probes": [],
        "searches": [],
        "host": HOST,
        "versions": VERSIONS,
    }
    folder = results_folder / name
    folder.mkdir(parents=True)
    (folder / "capacity.json").write_bytes(orjson.dumps({**record, **changed}))


def test_a_capacity_is_listed_with_its_orders_per_second(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    output = results(tmp_path, "list").output
    assert "capacity" in output
    assert "tcp 61.23k" in output


def test_a_capacity_is_shown_with_its_interval_and_flags(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first", flags=["interrupted: the figures are those found until then"])
    output = results(tmp_path, "show", "first").output
    assert "tcp holds p99 <= 1ms up to 61,234 orders/s (55,111..67,357)" in output
    assert "interrupted" in output


def test_two_capacities_are_compared_after_their_differing_conditions(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    put_capacity(tmp_path, "second", 122_468.0, objective="p99 <= 2ms")
    output = results(tmp_path, "diff", "first", "second").output
    assert output.index("p99 <= 2ms") < output.index("122,468")
    assert "2.00" in output
    assert "made at different times" in " ".join(output.split())


def test_a_capacity_that_was_not_found_is_compared_with_one_that_was(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    put_capacity(tmp_path, "second", None)
    assert "no capacity found" in results(tmp_path, "diff", "first", "second").output


def test_a_capacity_above_all_rates_is_compared_by_its_bound(tmp_path: Path) -> None:
    """Once only `no capacity found` was printed, and the bound was lost."""
    put_capacity(tmp_path, "first")
    bounds = {"kind": "above", "highest_held_orders_per_s": 16_000.0, "lowest_failed_orders_per_s": None}
    put_capacity(tmp_path, "second", None, answer=bounds)
    output = " ".join(results(tmp_path, "diff", "first", "second").output.split())
    assert "B: tcp's capacity for p99 <= 1ms is above 16,000 orders/s" in output
    assert output.index("B: tcp's") < output.index("no capacity found")


@pytest.mark.parametrize(("content", "error"), [(b"{", "is no JSON"), (b'{"schema": 2}', "has schema 2")])
def test_a_record_that_cannot_be_read_is_refused_with_the_reason(content: bytes, error: str, tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    (tmp_path / "first" / "capacity.json").write_bytes(content)
    shown = results(tmp_path, "show", "first")
    assert shown.exit_code != 0
    assert error in shown.output


def test_a_rerun_of_incomplete_settings_is_refused(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first", settings={"transport": "tcp"})
    refused = results(tmp_path, "rerun", "first")
    assert refused.exit_code == 2
    assert "does not say what was run" in refused.output
