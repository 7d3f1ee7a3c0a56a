"""`exchange results` of a simulation's folder."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.exchange_simulation.cli.results.kept_folders import results
from tests.exchange_simulation.experiments.simulate.sample_simulations import same, simulated

MARKET = ("--instruments", 3, "--orders", 3_000)


def test_it_is_listed_with_how_much_it_matched(tmp_path: Path) -> None:
    simulated(tmp_path, *MARKET, "--name", "first")
    output = results(tmp_path, "list").output
    assert "complete simulation 3,000 orders, 3 instruments, " in output
    assert "not listed" not in output


def test_one_that_was_killed_is_unfinished_and_not_taken_for_a_run(tmp_path: Path) -> None:
    simulated(tmp_path, *MARKET, "--trades", "--name", "first")
    (tmp_path / "first" / "simulation.json").unlink()
    assert "unfinished simulation written " in results(tmp_path, "list").output
    assert "the simulation goes on, or was killed" in results(tmp_path, "show", "first").output


def test_it_is_shown_as_its_command_did(tmp_path: Path) -> None:
    record = simulated(tmp_path, *MARKET, "--name", "first").record
    output = results(tmp_path, "show", "first").output
    speed, how = output.splitlines()[:2]
    assert f" orders/s: {record['totals']['orders']:,} orders of 3 instruments in " in speed
    assert how.startswith("  one process, 3 partitions, seed 1; start-up took another ")
    assert f"sum of xxh64: orders {record['checksums']['orders']}" in output


@pytest.mark.parametrize(("seed", "told"), [(1, "the same checksums of orders and of answers"), (2, "settings.seed")])
def test_two_are_held_side_by_side(seed: int, told: str, tmp_path: Path) -> None:
    simulated(tmp_path, *MARKET, "--name", "first")
    simulated(tmp_path, *MARKET, "--seed", seed, "--partitions", 1, "--name", "second")
    output = results(tmp_path, "diff", "first", "second").output
    assert told in output
    assert output.index("partitions") < output.index("orders/s")


def test_a_rerun_is_the_same_market_once_more(tmp_path: Path) -> None:
    first = simulated(tmp_path, *MARKET, "--policy", "exact-price", "--trades", "--rate", 50, "--name", "first").record
    done = results(tmp_path, "rerun", "first", "--name", "second", "--json")
    second = orjson.loads((tmp_path / "second" / "simulation.json").read_bytes())
    assert done.exit_code == 0
    assert same(first, second)
    assert second["events"]["orders_per_s"] == 50
    assert first["events"]["trades"]["rows"] == second["events"]["trades"]["rows"]


def test_a_rerun_of_settings_that_cannot_be_simulated_is_refused(tmp_path: Path) -> None:
    record = simulated(tmp_path, *MARKET, "--name", "first").record
    changed = {**record, "settings": {**record["settings"], "instruments": 0}}
    (tmp_path / "first" / "simulation.json").write_bytes(orjson.dumps(changed))
    refused = results(tmp_path, "rerun", "first")
    assert refused.exit_code == 2
    assert "instruments is 0" in refused.output
