"""`exchange results` of a simulation's folder."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.exchange_simulation.cli.results.kept_folders import results
from tests.exchange_simulation.experiments.simulate.sample_simulations import result_of, simulated

MARKET = ("--instruments", 3, "--orders", 3_000)


def test_a_simulation_is_listed_with_its_orders_and_instruments(tmp_path: Path) -> None:
    simulated(tmp_path, *MARKET, "--name", "first")
    output = results(tmp_path, "list").output
    assert "complete simulation 3,000 orders, 3 instruments, " in output
    assert "not listed" not in output


def test_a_killed_simulation_is_listed_as_unfinished(tmp_path: Path) -> None:
    simulated(tmp_path, *MARKET, "--trades", "--name", "first")
    (tmp_path / "first" / "simulation.json").unlink()
    assert "unfinished simulation written " in results(tmp_path, "list").output
    assert "the simulation goes on, or was killed" in results(tmp_path, "show", "first").output


def test_a_simulation_is_shown_as_its_command_printed_it(tmp_path: Path) -> None:
    record = simulated(tmp_path, *MARKET, "--name", "first").record
    output = results(tmp_path, "show", "first").output
    speed, conditions = output.splitlines()[:2]
    assert f" orders/s: {record['totals']['orders']:,} orders of 3 instruments in " in speed
    assert conditions.startswith("  one process, 3 partitions, seed 1; start-up took another ")
    assert f"sum of xxh64: orders {record['checksums']['orders']}" in output


@pytest.mark.parametrize(("seed", "words"), [(1, "the same checksums of orders and of answers"), (2, "settings.seed")])
def test_diff_shows_other_settings_and_equal_checksums(seed: int, words: str, tmp_path: Path) -> None:
    simulated(tmp_path, *MARKET, "--name", "first")
    simulated(tmp_path, *MARKET, "--seed", seed, "--partitions", 1, "--name", "second")
    output = results(tmp_path, "diff", "first", "second").output
    assert words in output
    assert output.index("partitions") < output.index("orders/s")


def test_a_rerun_gives_the_same_market(tmp_path: Path) -> None:
    options = ("--policy", "exact-price", "--trades", "--rate", 50)
    first = simulated(tmp_path, *MARKET, *options, "--name", "first").record
    rerun = results(tmp_path, "rerun", "first", "--name", "second", "--json")
    assert rerun.exit_code == 0
    second = orjson.loads((tmp_path / "second" / "simulation.json").read_bytes())
    assert result_of(second) == result_of(first)
    assert second["events"]["orders_per_s"] == 50
    assert second["events"]["trades"]["rows"] == first["events"]["trades"]["rows"]


def test_a_rerun_of_a_record_with_wrong_settings_is_refused(tmp_path: Path) -> None:
    record = simulated(tmp_path, *MARKET, "--name", "first").record
    record["settings"]["instruments"] = 0
    (tmp_path / "first" / "simulation.json").write_bytes(orjson.dumps(record))
    refused = results(tmp_path, "rerun", "first")
    assert refused.exit_code == 2
    assert "instruments is 0" in refused.output


@pytest.mark.parametrize(
    ("master", "option", "expected"),
    [
        ("none", "--spark", "local[2]"),
        ("none", "--no-spark", "none"),
        ("local[1]", "--spark", "local[1]"),
        ("local[1]", "--no-spark", "none"),
    ],
)
def test_a_rerun_uses_spark_if_the_user_says_so(
    master: str, option: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = simulated(tmp_path, *MARKET, "--name", "first").record
    (tmp_path / "first" / "simulation.json").write_bytes(orjson.dumps({**record, "master": master}))
    masters: list[str] = []

    def simulate(_simulation: object, master: str, *_: object, **__: object) -> int:
        masters.append(master)
        return 0

    monkeypatch.setattr("exchange_simulation.experiments.simulate.simulate.simulate", simulate)
    assert results(tmp_path, "rerun", "first", option).exit_code == 0
    assert masters == [expected]
