"""`exchange capacity`: its record, its page and its errors, with real and with simulated runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from exchange.settings import RunSettings
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.capacity import exchange_rates
from exchange_simulation.experiments.capacity.capacity import measured_capacity
from exchange_simulation.experiments.capacity.exchange_rates import ExchangeRates, objective_of
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.metrics import expected_orders_measured
from exchange_simulation.launching.transport_checks import check_transport
from tests.exchange_command import exchange, exchange_in_process


def test_a_search_of_real_runs_leaves_runs_record_and_page(tmp_path: Path) -> None:
    options = ("--transport", "memory", "--slo", "p50 <= 9s", "--from", 200_000, "--seconds", 0.1, "--probes", 4)
    finished = exchange_in_process("capacity", *options, "--pause", 0, "--results", tmp_path, "--name", "it", "--json")
    assert finished.code == 0, finished.err
    folder = tmp_path / "it"
    record = finished.record
    assert record["ceiling_orders_per_s"] > 10_000
    run_names = {path.parent.name for path in folder.glob("*/run.json")}
    probe_names = {probe["run"] for probe in record["probes"] + record["set_aside"]}
    assert run_names == {"000-ceiling", *probe_names}
    assert record["objective"] == "p50 <= 9s"
    assert all("noise_share" in probe for probe in record["probes"])
    page = (folder / "capacity.html").read_text()
    (folder / "capacity.html").unlink()
    assert exchange_in_process("report", folder).code == 0
    assert (folder / "capacity.html").read_text() == page


def test_every_combination_of_participants_has_a_search_of_its_own() -> None:
    words = ("capacity", "--gateways", "1,4", "--engines", "1,2", "--instruments", 10, "--subscribers", 2, "--dry-run")
    finished = exchange_in_process(*words)
    assert finished.code == 0, finished.err
    searches = [line for line in finished.out.splitlines() if "zeromq" in line]
    assert len(searches) == 4
    assert "zeromq with 4 gateways, 2 engines, 2 subscribers" in finished.out


def test_each_number_of_gateways_has_a_search_of_its_own(tmp_path: Path) -> None:
    options = ("--transport", "memory", "--slo", "p50 <= 9s", "--from", 20_000, "--seconds", 0.1, "--probes", 3)
    words = ("capacity", "--gateways", "1,2", *options, "--pause", 0, "--keep-noisy")
    finished = exchange_in_process(*words, "--results", tmp_path, "--name", "it")
    assert finished.code == 0, finished.err
    assert "memory's capacity for p50 <= 9s" in finished.out
    assert "the capacity of memory with 2 gateways for p50 <= 9s" in finished.out
    for gateways in (1, 2):
        [run, *_] = sorted((tmp_path / f"it-gateways-{gateways}").glob("0*/run.json"))
        assert orjson.loads(run.read_bytes())["settings"]["gateways"] == gateways


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--gateways", "4,4"), "--gateways has 4 twice"),
        (("--engines", "1,2"), "engines is 2; allowed is at most 1, the number of --instruments"),
        (("--subscribers", "0,8,8"), "--subscribers has 8 twice"),
        (("--gateways", "1,4", "--json"), "--json prints the record of one search"),
    ],
)
def test_numbers_of_gateways_that_have_no_answer_are_refused(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    finished = exchange_in_process("capacity", *words, "--results", tmp_path / "results")
    assert finished.code == 2
    assert sentence in " ".join(finished.err.split())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--subscribers", 2),
        ("--subscribers", 2, "--slow-subscriber", "drop", "--cpus", "gateway=0,engine=0"),
        ("--subscribers", 1, "--gateways", 2, "--engines", 2, "--instruments", 4),
    ],
)
def test_a_search_with_subscribers_measures_a_ceiling_and_probes(options: tuple[object, ...], tmp_path: Path) -> None:
    """Regression: the ceiling's run, which has no subscribers, was told to have some, and could not start."""
    load = ("--slo", "p50 <= 100s", "--from", 1_000, "--seconds", 0.2, "--probes", 3, "--pause", 0)
    finished = exchange("capacity", *load, *options, "--results", tmp_path, "--name", "it", "--json")
    assert finished.code == 0, finished.err
    assert finished.record["ceiling_orders_per_s"] > 1_000
    assert len(finished.record["probes"]) == 3
    runs = {path.parent.name: orjson.loads(path.read_bytes()) for path in (tmp_path / "it").glob("*/run.json")}
    assert "market_data" not in runs.pop("000-ceiling")
    assert all(run["market_data"]["published"]["messages"] > 0 for run in runs.values())


@pytest.mark.parametrize(("slo", "needed"), [("p99 <= 1ms", 1_000), ("p99.9 <= 1ms", 10_000)])
@pytest.mark.parametrize("arrivals", ["fixed", "poisson"])
@pytest.mark.parametrize("rate_per_s", [1_500.0, 3_000.0, 50_000.0])
def test_a_probe_at_a_low_rate_lasts_until_it_has_enough_orders(
    slo: str, needed: int, arrivals: str, rate_per_s: float
) -> None:
    load = ExchangeRates(RunSettings(arrivals=arrivals, warm_up_s=1.0), objective_of(slo), SearchSettings(seconds=2.0))
    measured_s = load.probe_s(rate_per_s) - load.settings.warm_up_s
    assert measured_s * rate_per_s > needed
    assert measured_s >= 2.0


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"warm_up_s": 0.5},
        {"warm_up_s": 2.0},
        {"gateways": 16},
        {"arrivals": "ramp:1..0.1", "warm_up_s": 0.5},
        {"arrivals": "steps:1@1,0.1@9", "warm_up_s": 0.5},
    ],
)
@pytest.mark.parametrize("rate_per_s", [500.0, 3_000.0])
def test_every_probe_measures_as_many_orders_as_its_objective_needs(
    settings: dict[str, Any], rate_per_s: float
) -> None:
    """Regression: figures leave out whole seconds of a warm-up, and a probe was longer by the warm-up as typed."""
    load = ExchangeRates(
        RunSettings(**settings, orders=None, duration_s=2.0), objective_of("p99 <= 1ms"), SearchSettings()
    )
    probe = replace(load.settings, orders_per_s=rate_per_s, duration_s=load.probe_s(rate_per_s))
    assert expected_orders_measured(probe) >= 1_000


@pytest.mark.parametrize(
    ("options", "duration"),
    [
        (("--keep-noisy",), "2 min 30 s to 6 min 53 s"),
        ((), "2 min 30 s to 10 min 8 s"),
        (("--seconds", 20, "--keep-noisy"), "11 min 30 s to 11 min 53 s"),
        (("--warm-up", 0.5, "--keep-noisy"), "3 min 0 s to 7 min 23 s"),
        (("--bench", "supply-chain --topology horizontal", "--keep-noisy"), "5 min 30 s"),
    ],
)
def test_a_dry_run_tells_how_long_a_search_takes(options: tuple[object, ...], duration: str) -> None:
    """Regression: a search with probes of 20 s was said to take 11 min 30 s to 6 min 30 s."""
    planned = exchange_in_process("capacity", *options, "--dry-run")
    assert planned.code == 0, planned.err
    assert re.search(rf"on: up to 30 probes of [0-9. to]+ s, {duration} in all\n", planned.out)


def test_the_lowest_rate_gives_the_longest_probe_enough_orders() -> None:
    load = ExchangeRates(RunSettings(), objective_of("p99 <= 1ms"), SearchSettings(longest_s=10.0))
    assert ceil(load.lowest_value()) == 101


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--slo", "fast"], "not understood"),
        (["--slo", "p99.99 <= 1ms"], "runs have no p99.99, which needs 100,000 orders"),
        (["--slo", "p95 <= 1ms"], "runs have no p95, which needs 200 orders"),
        (["--transport", "pigeon"], "known are"),
        (["--from", "0"], "--from"),
        (["--precision", "2"], "--precision"),
        (["--packing", "0"], "--packing is 0"),
        (["--from", "50"], "p99 <= 1ms needs 1,002: take --from 101 or more, or --longest 21"),
        (["--from", "5", "--seconds", "60"], "at which 60 s have 300 orders"),
        (["--slo", "p99.9 <= 1ms", "--from", "100"], "p99.9 <= 1ms needs 10,002"),
    ],
)
def test_a_mistake_starts_nothing(options: list[str], message: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["capacity", "--results", str(tmp_path / "results"), *options])
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.split())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("arrivals", ["fixed", "poisson"])
def test_the_usual_start_has_enough_orders_for_every_percentile(arrivals: str) -> None:
    """A p99.9 needs 10,002 orders, and 1,000 orders/s bring 10,000 in the 10 s that a probe may last."""
    settings = RunSettings(transport="memory", arrivals=arrivals)
    assert ExchangeRates(settings, objective_of("p99.9 <= 1ms"), SearchSettings()).lowest_value() > 1_000


def test_a_tape_with_too_few_orders_starts_nothing(tmp_path: Path) -> None:
    tape = tmp_path / "short.bin"
    results = tmp_path / "results"
    assert exchange_in_process("tape", "--orders", 500, "--output", tape).code == 0
    refused = exchange_in_process("capacity", "--tape", tape, "--results", results)
    assert refused.code == 2
    assert not results.exists()
    assert "of the 500 orders of --tape" in refused.err
    assert "499 are measured at 2,000 orders/s; p99 <= 1ms needs 1,000" in refused.err


def test_a_tape_whose_orders_a_warm_up_takes_starts_nothing(tmp_path: Path) -> None:
    tape = tmp_path / "short.bin"
    results = tmp_path / "results"
    assert exchange_in_process("tape", "--orders", 2_500, "--output", tape).code == 0
    refused = exchange_in_process("capacity", "--tape", tape, "--warm-up", 1, "--results", results)
    assert refused.code == 2
    assert "499 are measured at 2,000 orders/s" in refused.err
    assert not results.exists()


def test_a_search_with_a_tape_measures_a_ceiling_and_probes(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    assert exchange_in_process("tape", "--orders", 2_000, "--output", tape).code == 0
    options = ("--transport", "memory", "--slo", "p99 <= 9s", "--from", 100_000, "--seconds", 0.1, "--probes", 3)
    finished = exchange_in_process("capacity", *options, "--tape", tape, "--pause", 0, "--results", tmp_path, "--json")
    assert finished.code == 0, finished.err
    assert finished.record["ceiling_orders_per_s"] > 0
    assert finished.record["probes"]


def test_the_run_of_the_ceiling_drops_settings_that_memory_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(folder: Path, settings: RunSettings, *_: object) -> dict[str, Any]:
        check_transport(settings)
        return {"name": folder.name, "status": "complete", "reasons": [], "rates": {"orders_per_s": 4_000.0}}

    monkeypatch.setattr(exchange_rates, "measure", measure)
    settings = RunSettings(transport="tcp", nagle=("engine",), topology="simplex", secure=str(tmp_path), insecure=True)
    load = ExchangeRates(settings, objective_of("p99 <= 1ms"), SearchSettings())
    assert load.ceiling(tmp_path / "ceiling") == 4_000.0


def test_the_ceiling_of_a_search_at_a_broker_with_a_processor_is_measured(tmp_path: Path) -> None:
    """Regression: memory has no broker, so a processor for the broker ended the search in a traceback."""
    settings = RunSettings(transport="amqp", cpus={"broker": 0, "engine": 0})
    load = ExchangeRates(settings, objective_of("p99 <= 1ms"), SearchSettings())
    assert load.ceiling(tmp_path / "ceiling") > 1_000


def searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: Iterator[float | None], **search: Any
) -> dict[str, Any]:
    """capacity.json of a search with simulated runs, which all hold. `shares` are the noise of the probes in order."""

    def measure(folder: Path, settings: RunSettings, *_: object) -> dict[str, Any]:
        is_ceiling = settings.orders_per_s is None
        return {
            "name": folder.name,
            "status": "complete",
            "reasons": [],
            "rates": {"orders_per_s": 4_000.0},
            "completion_us": {"due": {"p99": 100.0, "count": 5_000}},
            "noise": {"share_of_all_cpus": 0.0 if is_ceiling else next(shares)},
        }

    monkeypatch.setattr(exchange_rates, "measure", measure)
    settings = SearchSettings(pause_s=0.0, **search)
    load = ExchangeRates(RunSettings(), objective_of("p99 <= 1ms"), settings)
    return measured_capacity(load, settings, tmp_path / "it").record


def test_a_noisy_probe_is_repeated_and_flagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = searched(tmp_path, monkeypatch, iter([0.3, 0.01, 0.0, 0.2, 0.054, 0.15]))
    assert [probe["noise_share"] for probe in record["probes"]] == [0.01, 0.0, 0.054]
    assert [run["noise_share"] for run in record["set_aside"]] == [0.3, 0.2, 0.15]
    names = [run["run"] for run in record["probes"] + record["set_aside"]]
    assert len(set(names)) == 6
    assert all((tmp_path / "it" / name).is_dir() for name in names)
    assert "3 runs set aside for noise: other work or steal took more than 5%" in record["flags"][0]
    assert "beside 1 of 3 probes, at most 5.4%" in record["flags"][1]
    assert record["redo_noisy"]["most_tries"] == 3
    assert record["redo_noisy"]["most_extra_runs"] == 15


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("the broker is gone")])
@pytest.mark.parametrize("quiet_probes", [[0.0], []])
def test_a_noisy_probe_is_recorded_if_the_search_ends_in_its_repetition(
    error: BaseException, quiet_probes: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shares() -> Iterator[float]:
        yield from quiet_probes
        yield 0.3
        raise error

    record = searched(tmp_path, monkeypatch, shares())
    assert [probe["noise_share"] for probe in record["probes"]] == quiet_probes
    assert [run["noise_share"] for run in record["set_aside"]] == [0.3]
    assert (tmp_path / "it" / record["set_aside"][0]["run"]).is_dir()


def test_a_search_says_its_plan_and_numbers_its_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    searched(tmp_path, monkeypatch, iter([0.3, 0.0, 0.0, 0.0]), most_probes=12)
    plan, *probes = capsys.readouterr().err.splitlines()
    assert plan.startswith(
        "zeromq: the highest rate that holds p99 <= 1ms, from 2,000 orders/s on: up to 12 probes of 2"
    )
    assert probes[0].startswith("probe  1 of at most 12:        2,000 orders/s: again, since others took 30% of all")
    assert probes[1] == "probe  1 of at most 12:        2,000 orders/s: held"
    assert probes[2].startswith("probe  2 of at most 12: ")


def test_noisy_probes_are_repeated_up_to_the_cap_of_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = searched(tmp_path, monkeypatch, iter([0.3] * 9), most_probes=3)
    assert len(record["probes"]) == 3
    assert len(record["set_aside"]) == 1


def test_without_redo_noisy_every_noisy_probe_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = searched(tmp_path, monkeypatch, iter([0.3] * 9), redo_noisy=False)
    assert record["set_aside"] == []
    assert record["redo_noisy"] is None
    assert "beside 3 of 3 probes" in record["flags"][0]


def test_probes_of_unknown_noise_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe of less than a quarter of a second has no noise share."""
    record = searched(tmp_path, monkeypatch, iter([0.0, None, None]))
    assert record["flags"] == ["the noise of the machine is unknown for 2 of 3 probes"]
