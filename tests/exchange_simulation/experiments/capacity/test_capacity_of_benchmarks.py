"""`exchange capacity --bench`: the scale of a benchmark that passes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from exchange.load_axis import LoadAxis
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.capacity.curve import ProbeOutcome
from exchange_simulation.experiments.capacity.exchange_rates import objective_of
from exchange_simulation.experiments.capacity.search import CapacitySearch, SearchSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.supply_chain.topologies import EXAMPLE
from exchange_simulation.messaging.turned_up import load_again, load_of
from tests.exchange_command import exchange, exchange_in_process

pytestmark = pytest.mark.xdist_group("capacity of benchmarks")

WORKLOAD = "supply-chain --transport zeromq --interactions 5 --warm-up 0.1 --duration 0.3"
BASE = LoadAxis("base", "base", "base", "the highest base", whole=True)


@dataclass(frozen=True)
class RecordedSearch:
    """A finished search: its folder and its record."""

    folder: Path
    record: dict[str, Any]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> RecordedSearch:
    """A finished search for the base of the supply chain."""
    results = tmp_path_factory.mktemp("results")
    options = ("--bench", WORKLOAD, "--from", 2, "--probes", 3, "--pause", 0, "--results", results)
    finished = exchange_in_process("capacity", *options, "--name", "it", "--json")
    assert finished.code == 0, finished.err
    return RecordedSearch(folder=results / "it", record=finished.record)


def test_a_search_leaves_a_benchmark_for_each_probe_a_record_and_a_page(searched: RecordedSearch) -> None:
    folder = searched.folder
    record = searched.record
    assert record["benchmark"] == "supply-chain"
    assert record["axis"]["name"] == "base"
    assert record["reach_base"] == {"low": 1, "high": record["ceiling_base"]}
    probes = {probe["run"] for probe in record["probes"] + record["set_aside"]}
    assert probes == {path.parent.name for path in folder.glob("*/bench.json")}
    assert all(probe["base"] == int(probe["base"]) for probe in record["probes"])
    assert "supply-chain over zeromq (vertical)" in exchange("results", "show", folder).out
    page = (folder / "capacity.html").read_text()
    (folder / "capacity.html").unlink()
    assert exchange("report", folder).code == 0
    assert (folder / "capacity.html").read_text() == page


@pytest.mark.long
def test_rerun_repeats_a_search_from_its_record(searched: RecordedSearch, tmp_path: Path) -> None:
    rerun = exchange("results", "rerun", searched.folder, "--results", tmp_path, "--name", "again", "--json").record
    assert rerun["settings"] == searched.record["settings"]
    assert rerun["subject"] == searched.record["subject"]


def test_a_setting_that_the_benchmark_s_transport_lacks_is_refused() -> None:
    with pytest.raises(UserError, match="--delivery is durable, which tcp cannot have: use amqp or amqps"):
        load_of("de-spsc --transport tcp --sizes 64 --delivery durable", None)


def test_a_latency_objective_is_refused_for_messages_too_small_for_a_timestamp() -> None:
    small = "de-spsc --transport memory --sizes 8"
    with pytest.raises(UserError, match=r"--slo p99 <= 5ms: not measured: messages of 8 bytes .* of 16B or more"):
        load_of(small, None, objective_of("p99 <= 5ms")).lowest_value()
    assert load_of(small, None, objective_of("lag p99 <= 5ms, loss = 0")).lowest_value() > 0


def test_a_benchmark_with_a_rate_is_judged_by_the_user_s_objective(tmp_path: Path) -> None:
    options = ("--slo", "p99 <= 30s", "--from", 500, "--probes", 3, "--pause", 0, "--keep-noisy")
    bench = "de-spsc --transport memory --sizes 64 --seconds 0.1"
    finished = exchange_in_process("capacity", "--bench", bench, *options, "--results", tmp_path, "--json")
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["objective"] == "p99 <= 30s"
    assert record["subject"] == "de-spsc over memory (64 B)"
    first = record["probes"][0]
    assert first["rate_per_s"] == 500
    is_within_objective = first["figures"]["due_p99_us"] < 30e6
    assert (first["log_ratio"] < 0) is is_within_objective, "log_ratio is the logarithm of figure / bound"
    benchmark = json.loads((tmp_path / record["name"] / first["run"] / "bench.json").read_bytes())
    assert benchmark["rows"][0]["repeats"][0]["roles"]["publisher"]["sent"] == 1000, "as many as a p99 needs"


@pytest.mark.parametrize(
    ("bench", "subject"),
    [
        ("fe-spmc", "fe-spmc over amqp (64 B, 32 consumers)"),
        ("fe-spmc --transport zeromq --consumers 4", "fe-spmc over zeromq (64 B, 4 consumers)"),
        ("de-spsc", "de-spsc over amqp (64 B)"),
    ],
)
def test_options_that_the_user_leaves_out_get_one_value_each(bench: str, subject: str) -> None:
    load = load_of(bench, None)
    assert load.lowest_value() == 1
    assert load.record_header()["subject"] == subject


def test_a_search_stays_above_the_lowest_base_of_the_topology(tmp_path: Path) -> None:
    load = load_of("supply-chain --topology horizontal", None)
    assert load.lowest_value() == 5
    assert load.ceiling(tmp_path) > 5


def test_a_workload_that_does_not_depend_on_the_base_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(EXAMPLE)
    with pytest.raises(UserError, match="its load does not depend on --base"):
        load_of(f"supply-chain --topology freeform --config {config}", None)


def test_the_supply_chain_is_searched_with_all_interactions_at_once() -> None:
    assert load_of("supply-chain", None).settings["interactions"] == [str(number) for number in range(1, 8)]


@pytest.mark.parametrize("bench", ["supply-chain", "de-spsc --transport tcp"])
def test_a_load_is_restored_from_its_record(bench: str) -> None:
    header = load_of(bench, None).record_header()
    restored = load_again(json.loads(json.dumps(header)), objective_of)
    assert restored.record_header()["subject"] == header["subject"]


def test_the_ceiling_of_a_rate_is_the_bandwidth_of_the_network(tmp_path: Path) -> None:
    load = load_of("de-spsc --transport tcp --sizes 64KiB --network gige", None)
    assert load.ceiling(tmp_path) == 1e9 / 8 / 65536


def test_a_search_over_whole_numbers_probes_whole_numbers_only() -> None:
    probed_values: list[float] = []

    def probe(value: float) -> ProbeOutcome:
        probed_values.append(value)
        return ProbeOutcome(value, value <= 7)

    search = CapacitySearch(probe, lambda: 1000.0, 1.0, SearchSettings(start_per_s=10.0), BASE)
    search.run()
    assert all(value == int(value) for value in probed_values)
    record = search.as_dict(is_over=True)
    # 10 fails, so the search goes down by its factor of four, to 2.5: the whole number 2 holds.
    assert record["answer"] == {"kind": "found", "highest_held_base": 2, "lowest_failed_base": 10}
    assert 7 <= record["capacity_base"]["value"] < 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bench", "pigeons"], "'pigeons' is no benchmark; there are batch-size"),
        (["--bench", ""], "give NAME OPTIONS"),
        (["--bench", "supply-chain '"], "give NAME OPTIONS"),
        (["--bench", "request-reply"], "the load of request-reply cannot be turned up; --bench takes batch-size"),
        (["--bench", "de-spsc --rate 500"], "a search turns --rate up itself; leave it out"),
        (["--bench", "supply-chain --base 0"], "bases are 1 to 1,000"),
        (["--bench", "supply-chain --topology vertical,horizontal"], "a capacity is of one cell"),
        (["--bench", "supply-chain --topology horizontal", "--from", "3"], "--base is 3"),
        (["--bench", "supply-chain", "--slo", "p99 <= 1ms"], "--slo is no option for supply-chain"),
        (["--bench", "supply-chain", "--packing", "4"], "--packing is of runs of the exchange"),
    ],
)
def test_a_mistake_starts_nothing(options: list[str], message: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["capacity", "--results", str(tmp_path / "results"), *options])
    assert refused.exit_code == 2, refused.output
    assert message in " ".join(refused.output.split())
    assert not (tmp_path / "results").exists()


def test_a_probe_sends_enough_messages_for_the_percentile() -> None:
    objective = objective_of("p99 <= 5ms")
    load = load_of("de-spsc --transport memory --sizes 64 --count 200", None, objective)
    assert objective.needed_orders == 1_000
    assert load._settings_at(5_000.0)["count"] == 1_000


@pytest.mark.parametrize("option", ["--keep-noisy", "--redo-noisy"])
def test_a_benchmark_s_options_may_not_say_what_becomes_of_noisy_probes(option: str) -> None:
    with pytest.raises(UserError, match="--redo-noisy and --keep-noisy are options of exchange capacity itself"):
        load_of(f"de-spsc --transport tcp --sizes 64 {option}", None)
