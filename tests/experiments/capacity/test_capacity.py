"""`exchange capacity`: what is made of the searches, and the command as its user sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from experiments.capacity.capacity import objective_of
from experiments.capacity.search import CapacitySearch, SearchSettings
from experiments.capacity.table import headline, show
from tests.exchange_command import exchange

RECORD = {"settings": {"transport": "tcp"}, "objective": "p99 <= 1ms", "probes": []}


def searched(capacity_per_s: float, ceiling_per_s: float = 1e6) -> CapacitySearch:
    """A finished search over made-up runs, which hold up to `capacity_per_s`."""
    search = CapacitySearch(lambda rate: rate <= capacity_per_s, lambda: ceiling_per_s, SearchSettings(repeats=3))
    search.run()
    return search


def test_a_capacity_is_the_median_of_the_searches_about_the_edge() -> None:
    search = searched(61_234.0)
    assert len(search.edges) == 3
    assert search.capacity is not None
    assert search.capacity.value == pytest.approx(61_234, rel=0.05)
    record = {**RECORD, **search.as_dict()}
    assert headline(record).startswith(f"tcp holds p99 <= 1ms up to {search.capacity.value:,.0f} orders/s")
    assert record["flags"] == []


def test_a_capacity_near_what_the_generator_itself_can_do_is_flagged() -> None:
    assert searched(61_234.0, 70_000.0).flags() == ["over 80% of the generator's own ceiling, 70,000 orders/s"]


def test_a_rate_that_held_at_the_ceiling_was_the_generators() -> None:
    search = searched(2e6, 70_000.0)
    assert search.capacity is None
    assert "the generator is the limit" in search.flags()[0]
    assert "no edge found" in headline({**RECORD, **search.as_dict()})


def test_what_never_holds_is_told() -> None:
    assert searched(0.5).flags() == ["not held even at 1 order/s"]


def test_an_interrupted_search_says_so() -> None:
    search = CapacitySearch(lambda rate: rate <= 1_000, lambda: 1e6, SearchSettings())
    assert search.as_dict()["status"] == "partial"
    assert search.flags() == ["interrupted: what was found until then"]


def test_a_long_reason_leaves_the_figures_their_room(capsys: pytest.CaptureFixture[str]) -> None:
    probe = {"orders_per_s": 64_000.0, "holds": False, "why": "saturated: " + "orders were still growing, " * 4}
    figures = {"completion_us": {"due": {"p50": 120.0, "p99": 4_321.0}}, "lag_us": {"p99": 99.0}}
    show({**RECORD, **searched(61_234.0).as_dict(), "probes": [{**probe, **figures}]})
    row = next(line for line in capsys.readouterr().out.splitlines() if "64,000" in line)
    assert row.split()[:5] == ["64,000", "0", "of", "1", "120"]
    assert "4,321" in row
    assert row.endswith("…")


def test_a_search_of_real_runs_leaves_them_and_its_record(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--slo", "max <= 9s", "--from", 200_000, "--seconds", 0.1, "--precision", 1)
    said = exchange("capacity", *words, "--repeats", 1, "--pause", 0, "--results", tmp_path, "--name", "it", "--json")
    assert said.code == 0, said.err
    assert said.record["ceiling_orders_per_s"] > 10_000
    names = {path.parent.name for path in (tmp_path / "it").glob("*/run.json")}
    assert {probe["run"] for probe in said.record["probes"]} == {name for name in names if "ceiling" not in name}
    assert objective_of("max <= 9s").words == said.record["objective"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--slo", "fast"], "not understood"),
        (["--transport", "pigeon"], "known are"),
        (["--from", "0"], "--from"),
        (["--precision", "2"], "--precision"),
        (["--packing", "0"], "--packing is 0"),
    ],
)
def test_a_mistake_starts_nothing(words: list[str], said: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["capacity", "--results", str(tmp_path / "results"), *words])
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())
    assert not (tmp_path / "results").exists()
