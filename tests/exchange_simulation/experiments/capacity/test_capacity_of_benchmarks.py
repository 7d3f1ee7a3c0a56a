"""`exchange capacity --bench`: the scale of a benchmark that passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from exchange.json_records import LoadAxis
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


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of a search, and its record."""
    results = tmp_path_factory.mktemp("results")
    words = ("--bench", WORKLOAD, "--from", 2, "--probes", 3, "--pause", 0, "--results", results)
    said = exchange_in_process("capacity", *words, "--name", "it", "--json")
    assert said.code == 0, said.err
    return results / "it", said.record


def test_a_search_leaves_a_benchmark_for_each_probe(
    searched: tuple[Path, dict[str, Any]],
) -> None:
    """It leaves its record and its page, too."""
    folder, record = searched
    assert (record["benchmark"], record["axis"]["name"]) == ("supply-chain", "base")
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
def test_a_search_is_made_again_from_its_record(searched: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, record = searched
    again = exchange("results", "rerun", folder, "--results", tmp_path, "--name", "again", "--json").record
    assert (again["settings"], again["subject"]) == (record["settings"], record["subject"])


def test_a_setting_that_the_benchmark_s_transport_lacks_is_refused() -> None:
    with pytest.raises(UserError, match="--delivery is durable, which tcp cannot have: use amqp or amqps"):
        load_of("de-spsc --transport tcp --sizes 64 --delivery durable", None)


def test_an_objective_without_messages_is_refused_before_the_start() -> None:
    """Each probe said "not measured", for minutes."""
    small = "de-spsc --transport memory --sizes 8"
    with pytest.raises(UserError, match=r"--slo p99 <= 5ms: not measured: messages of 8 bytes .* of 16B or more"):
        load_of(small, None, objective_of("p99 <= 5ms")).least()
    assert load_of(small, None, objective_of("lag p99 <= 5ms, loss = 0")).least() > 0


def test_a_benchmark_with_a_rate_is_held_against_the_user_s_objective(tmp_path: Path) -> None:
    words = ("--slo", "p99 <= 30s", "--from", 500, "--probes", 3, "--pause", 0, "--keep-noisy")
    bench = "de-spsc --transport memory --sizes 64 --seconds 0.1"
    said = exchange_in_process("capacity", "--bench", bench, *words, "--results", tmp_path, "--json")
    assert said.code == 0, said.err
    record = said.record
    assert (record["objective"], record["subject"]) == ("p99 <= 30s", "de-spsc over memory (64 B)")
    first, *_ = record["probes"]
    assert first["rate_per_s"] == 500
    assert (first["log_ratio"] < 0) is (first["figures"]["due_p99_us"] < 30e6)
    written = json.loads((tmp_path / record["name"] / first["run"] / "bench.json").read_bytes())
    assert written["rows"][0]["repeats"][0]["roles"]["publisher"]["sent"] == 1000, "as many as a p99 needs"


@pytest.mark.parametrize(
    ("bench", "subject"),
    [
        ("fe-spmc", "fe-spmc over amqp (64 B, 32 consumers)"),
        ("fe-spmc --transport zeromq --consumers 4", "fe-spmc over zeromq (64 B, 4 consumers)"),
        ("de-spsc", "de-spsc over amqp (64 B)"),
    ],
)
def test_what_the_user_leaves_open_becomes_one_cell(bench: str, subject: str) -> None:
    load = load_of(bench, None)
    assert load.least() == 1
    assert load.known()["subject"] == subject


def test_a_search_stays_above_the_least_that_the_topology_takes(tmp_path: Path) -> None:
    """It probed base 2, which was refused, and ended with a mistake that the user had not made."""
    load = load_of("supply-chain --topology horizontal", None)
    assert load.least() == 5
    assert load.ceiling(tmp_path) > 5


def test_a_workload_that_no_base_changes_is_refused(tmp_path: Path) -> None:
    """Each probe offered the same, and the answer was the ceiling or below 1."""
    config = tmp_path / "mine.toml"
    config.write_text(EXAMPLE)
    with pytest.raises(UserError, match="its load does not depend on --base"):
        load_of(f"supply-chain --topology freeform --config {config}", None)


def test_all_interactions_of_the_supply_chain_stay_on() -> None:
    """They were taken for a list of cells, of which the last was measured."""
    assert load_of("supply-chain", None).settings["interactions"] == [str(number) for number in range(1, 8)]


@pytest.mark.parametrize("bench", ["supply-chain", "de-spsc --transport tcp"])
def test_a_recorded_load_is_the_same_again(bench: str) -> None:
    """The record of a load at a rate lacked `count`, which the user had not given."""
    known = load_of(bench, None).known()
    again = load_again(json.loads(json.dumps(known)), lambda _: None)  # type: ignore[arg-type, return-value]
    assert again.known()["subject"] == known["subject"]


def test_the_ceiling_of_a_rate_is_what_a_link_of_the_network_carries(tmp_path: Path) -> None:
    words = "de-spsc --transport tcp --sizes 64KiB --network gige"
    assert load_of(words, None).ceiling(tmp_path) == 1e9 / 8 / 65536


def test_the_bracket_of_whole_numbers_is_of_whole_numbers() -> None:
    tried: list[float] = []

    def probe(value: float) -> ProbeOutcome:
        tried.append(value)
        return ProbeOutcome(value, value <= 7)

    search = CapacitySearch(probe, lambda: 1000.0, 1.0, SearchSettings(start_per_s=10.0), BASE)
    search.run()
    assert all(value == int(value) for value in tried)
    found = search.as_dict(is_over=True)
    assert found["answer"] == {"kind": "found", "highest_held_base": 2, "lowest_failed_base": 10}
    assert 7 <= found["capacity_base"]["value"] < 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bench", "pigeons"], "'pigeons' is no benchmark; there are batch-size"),
        (["--bench", ""], "give NAME OPTIONS"),
        (["--bench", "supply-chain '"], "give NAME OPTIONS"),
        (["--bench", "de-pp"], "the load of de-pp cannot be turned up; --bench takes de-mpmc"),
        (["--bench", "supply-chain --base 0"], "bases are 1 to 1,000"),
        (["--bench", "supply-chain --topology vertical,horizontal"], "a capacity is of one cell"),
        (["--bench", "supply-chain --topology horizontal", "--from", "3"], "--base is 3"),
        (["--bench", "supply-chain", "--slo", "p99 <= 1ms"], "--slo is no option for supply-chain"),
        (["--bench", "supply-chain", "--packing", "4"], "--packing is of runs of the exchange"),
    ],
)
def test_a_mistake_starts_nothing(words: list[str], said: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["capacity", "--results", str(tmp_path / "results"), *words])
    assert refused.exit_code == 2, refused.output
    assert said in " ".join(refused.output.split())
    assert not (tmp_path / "results").exists()


def test_a_probe_has_as_many_messages_as_its_percentile_takes() -> None:
    """A p99 of 200 messages, which is about their maximum, was judged."""
    objective = objective_of("p99 <= 5ms")
    load = load_of("de-spsc --transport memory --sizes 64 --count 200", None, objective)
    assert load._settings_at(5_000.0)["count"] == objective.needed_orders == 1_000


@pytest.mark.parametrize("option", ["--keep-noisy", "--redo-noisy"])
def test_noisy_probes_are_the_search_s_own_affair(option: str) -> None:
    with pytest.raises(UserError, match="--redo-noisy and --keep-noisy are options of exchange capacity itself"):
        load_of(f"de-spsc --transport tcp --sizes 64 {option}", None)
