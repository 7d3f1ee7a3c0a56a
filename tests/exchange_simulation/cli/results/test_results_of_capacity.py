"""`exchange results` of a capacity's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from exchange.settings import RunSettings
from tests.exchange_simulation.cli.results.kept_folders import DAY, results
from tests.exchange_simulation.experiments.trials.sample_trials import HOST, VERSIONS


def put_capacity(there: Path, name: str, orders_per_s: float | None = 61_234.0, **changed: Any) -> None:
    found = {"value": orders_per_s, "low": 0.9 * orders_per_s, "high": 1.1 * orders_per_s} if orders_per_s else None
    record = {
        "schema": 1,
        "name": name,
        "status": "complete",
        "started_at": f"{DAY}:20+00:00",
        "objective": "p99 <= 1ms",
        "settings": RunSettings(transport="tcp").as_dict(),
        "search": {"repeats": 5},
        "flags": [],
        "capacity_orders_per_s": found,
        "ceiling_orders_per_s": 1e6,
        "probes": [],
        "searches": [],
        "host": HOST,
        "versions": VERSIONS,
    }
    (there / name).mkdir(parents=True)
    (there / name / "capacity.json").write_bytes(orjson.dumps({**record, **changed}))


def test_it_is_listed_with_what_was_found(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    output = results(tmp_path, "list").output
    assert "capacity" in output
    assert "tcp 61.23k" in output


def test_it_is_shown_as_its_command_did(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first", flags=["interrupted: the figures are those found until then"])
    output = results(tmp_path, "show", "first").output
    assert "tcp holds p99 <= 1ms up to 61,234 orders/s (55,111..67,357)" in output
    assert "interrupted" in output


def test_two_are_held_side_by_side_after_what_differs_in_them(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    put_capacity(tmp_path, "second", 122_468.0, objective="p99 <= 2ms")
    output = results(tmp_path, "diff", "first", "second").output
    assert output.index("p99 <= 2ms") < output.index("122,468")
    assert "2.00" in output
    assert "made at different times" in " ".join(output.split())


def test_one_without_an_edge_can_be_held_against_one_that_has_it(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    put_capacity(tmp_path, "second", None)
    assert "no edge" in results(tmp_path, "diff", "first", "second").output


def test_a_capacity_beyond_a_search_is_said_beside_another(tmp_path: Path) -> None:
    """It was `no edge` alone, so its bound was lost."""
    put_capacity(tmp_path, "first")
    bounds = {"kind": "above", "highest_held_orders_per_s": 16_000.0, "lowest_failed_orders_per_s": None}
    put_capacity(tmp_path, "second", None, answer=bounds)
    output = " ".join(results(tmp_path, "diff", "first", "second").output.split())
    assert "B: tcp's capacity for p99 <= 1ms is above 16,000 orders/s" in output
    assert output.index("B: tcp's") < output.index("no edge")


@pytest.mark.parametrize(("content", "told"), [(b"{", "is no JSON"), (b'{"schema": 2}', "has schema 2")])
def test_what_cannot_be_read_is_said(content: bytes, told: str, tmp_path: Path) -> None:
    put_capacity(tmp_path, "first")
    (tmp_path / "first" / "capacity.json").write_bytes(content)
    shown = results(tmp_path, "show", "first")
    assert shown.exit_code != 0
    assert told in shown.output


def test_a_rerun_of_settings_that_nothing_can_be_run_with_is_refused(tmp_path: Path) -> None:
    put_capacity(tmp_path, "first", settings={"transport": "tcp"})
    refused = results(tmp_path, "rerun", "first")
    assert refused.exit_code == 2
    assert "does not say what was run" in refused.output
