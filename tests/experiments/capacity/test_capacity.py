"""`exchange capacity` as its user sees it."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from exchange.settings import RunSettings
from experiments.capacity.exchange_rates import least_rate_per_s, objective_of, probe_s
from experiments.capacity.search import SearchSettings
from tests.exchange_command import exchange


def test_a_search_of_real_runs_leaves_them_its_record_and_its_page(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--slo", "p50 <= 9s", "--from", 200_000, "--seconds", 0.1, "--probes", 4)
    said = exchange("capacity", *words, "--pause", 0, "--results", tmp_path, "--name", "it", "--json")
    assert said.code == 0, said.err
    folder, record = tmp_path / "it", said.record
    assert record["ceiling_orders_per_s"] > 10_000
    names = {path.parent.name for path in folder.glob("*/run.json")}
    assert {probe["run"] for probe in record["probes"]} == {name for name in names if "ceiling" not in name}
    assert record["objective"] == "p50 <= 9s"
    assert all("noise_share" in probe for probe in record["probes"])
    page = (folder / "capacity.html").read_text()
    (folder / "capacity.html").unlink()
    assert exchange("report", folder).code == 0
    assert (folder / "capacity.html").read_text() == page


@pytest.mark.parametrize(("slo", "needed"), [("p99 <= 1ms", 1_000), ("p99.9 <= 1ms", 10_000)])
@pytest.mark.parametrize("arrivals", ["fixed", "poisson"])
def test_a_probe_at_a_low_rate_goes_on_until_it_has_the_orders(slo: str, needed: int, arrivals: str) -> None:
    settings, objective = RunSettings(arrivals=arrivals, warm_up_s=1.0), objective_of(slo)
    for rate_per_s in (1_500.0, 3_000.0, 50_000.0):
        seconds = probe_s(rate_per_s, settings, objective, SearchSettings())
        assert (seconds - settings.warm_up_s) * rate_per_s > needed
        assert seconds - settings.warm_up_s >= 2.0


def test_the_lowest_rate_is_one_at_which_the_longest_probe_has_enough_orders() -> None:
    least = least_rate_per_s(RunSettings(), objective_of("p99 <= 1ms"), SearchSettings(longest_s=10.0))
    assert ceil(least) == 101


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--slo", "fast"], "not understood"),
        (["--slo", "p99.99 <= 1ms"], "not understood"),
        (["--transport", "pigeon"], "known are"),
        (["--from", "0"], "--from"),
        (["--precision", "2"], "--precision"),
        (["--packing", "0"], "--packing is 0"),
        (["--from", "50"], "p99 <= 1ms needs 1,002: take --from 101 or more, or --longest 21"),
        (["--slo", "p99.9 <= 1ms", "--from", "100"], "p99.9 <= 1ms needs 10,002"),
    ],
)
def test_a_mistake_starts_nothing(words: list[str], said: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["capacity", "--results", str(tmp_path / "results"), *words])
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())
    assert not (tmp_path / "results").exists()
