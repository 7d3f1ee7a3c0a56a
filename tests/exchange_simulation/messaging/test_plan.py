"""Which benchmarks there are, which cells each measures, and over which transports a suite measures them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.messaging import suite as suite_module
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.benchmark_record import settings_given
from exchange_simulation.messaging.benchmarks import benchmark_of, de_spsc, names
from exchange_simulation.messaging.options import settings_again, settings_from_words
from exchange_simulation.messaging.setup import _run_settings_of, check_cells, plan_of
from exchange_simulation.messaging.suite import SuiteJob, jobs_of_suite, measure_suite
from transports.base import Pattern

WITHOUT_PAIRS = {"perftest", "fe-spmc", "te-spsc", "request-reply", "supply-chain"}
"""Benchmarks whose links join more than two roles."""


def settings(benchmark: BenchmarkDefinition, words: str) -> dict[str, object]:
    settings_of_words, _ = settings_from_words(benchmark, words.split())
    return dict(settings_of_words)


def test_a_repeated_benchmark_has_the_same_delivery() -> None:
    """A record leaves out the options that the user left open; the default of --delivery depends on the transport."""
    benchmark = benchmark_of("de-spsc")
    first = settings(benchmark, "--transport amqp --sizes 8")
    recorded = json.loads(json.dumps(settings_given(first)))
    again = settings_again({"settings": recorded}, benchmark)
    assert _run_settings_of("amqp", first).delivery == "lossy"
    assert _run_settings_of("amqp", again).delivery == "lossy"
    assert again["sizes"] == (8,)
    assert again["count"] is None


def planned_points(words: str, transport: str) -> Sequence[tuple[str, int]]:
    """Matching and preloaded messages of each planned cell of request-reply over a transport."""
    benchmark = benchmark_of("request-reply")
    plan = plan_of(benchmark, settings(benchmark, words))
    return [(cell.point["match"], cell.point["preloaded"]) for cell in plan.cells if cell.transport == transport]


def test_cells_are_left_out_over_transports_without_their_queue() -> None:
    words = "--clients 6 --threads 1 --match indexed,scan --preload 0,50"
    assert planned_points(words, "amqp") == [("indexed", 0), ("scan", 0), ("indexed", 50), ("scan", 50)]
    assert planned_points(words, "zeromq") == [("indexed", 0)]


def test_a_plan_names_the_reason_for_cells_left_out() -> None:
    benchmark = benchmark_of("request-reply")
    words = "--clients 6 --threads 1 --match indexed,scan --preload 0,50"
    plan = plan_of(benchmark, settings(benchmark, words))
    assert plan.left_out == [
        "zeromq: no queue that could be scanned or preloaded (--match indexed --preload 0 needs none)"
    ]
    assert plan.patterns(benchmark) == {"amqp": [Pattern.REQUESTS, Pattern.SCAN], "zeromq": [Pattern.REQUESTS]}


def test_points_are_measured_over_each_transport_in_turn() -> None:
    benchmark = benchmark_of("de-spsc")
    plan = plan_of(benchmark, settings(benchmark, "--sizes 8,64 --transport amqp,zeromq"))
    assert [(cell.transport, cell.size) for cell in plan.cells] == [
        ("amqp", 8),
        ("zeromq", 8),
        ("amqp", 64),
        ("zeromq", 64),
    ]


def test_a_transport_over_which_nothing_can_be_measured_is_refused() -> None:
    with pytest.raises(UserError, match="zeromq: no queue that could be scanned"):
        planned_points("--match scan", "zeromq")


def test_rates_that_no_link_carries_are_left_out() -> None:
    benchmark = benchmark_of("de-spsc")
    words = "--sizes 8,16KiB,32KiB,64KiB --rate 2000,8000,max --network gige --transport amqp"
    plan = plan_of(benchmark, settings(benchmark, words))
    measured = [(cell.size, cell.load.highest_per_s if cell.load else None) for cell in plan.cells]
    assert measured == [
        (8, 2000),
        (8, 8000),
        (8, None),
        (1 << 14, 2000),
        (1 << 14, None),
        (1 << 15, 2000),
        (1 << 15, None),
        (1 << 16, None),
    ]
    assert plan.left_out == [
        "amqp: at 8,000 messages/s --network gige carries at most 15,625 bytes a message",
        "amqp: at 2,000 messages/s --network gige carries at most 62,500 bytes a message",
    ]


@pytest.mark.parametrize("name", names())
def test_descriptors_of_every_cell_are_checked_without_a_socket(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket", no_socket)
    checked: list[int] = []
    monkeypatch.setattr(
        "exchange_simulation.messaging.setup.check_descriptors", lambda needed, _who: checked.append(needed)
    )
    benchmark = benchmark_of(name)
    cells = plan_of(benchmark, settings(benchmark, "--quick")).cells
    check_cells(benchmark, cells)

    assert len(checked) == len(cells)
    assert min(checked) >= 2


def test_a_benchmark_has_the_name_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = de_spsc.BENCHMARK
    monkeypatch.setattr(de_spsc, "BENCHMARK", replace(declared, name="another"))
    assert benchmark_of("de-spsc").name == "de-spsc"
    assert [benchmark_of(name).name for name in names()] == names()


def test_a_suite_gives_the_supply_chain_no_delivery() -> None:
    """Each group of messages of the supply chain has its own delivery."""
    jobs = jobs_of_suite({"quick": True, "delivery": "confirmed", "transport": ()})
    with_delivery = {job.benchmark.name for job in jobs if job.settings.get("delivery")}
    assert set(names()) - with_delivery == {"supply-chain"}


def test_settings_of_a_suite_s_parts_have_no_options_of_output() -> None:
    """Regression: parts recorded the defaults of these options, whatever the user had asked of the suite."""
    first, *_ = jobs_of_suite({"quick": True, "transport": ()})
    assert not {"results", "name", "as_json"} & first.settings.keys()


def suite_transports(*transports: str) -> dict[str, Sequence[str]]:
    """The transports of each benchmark of a suite over these transports; over the defaults if none are given."""
    jobs = jobs_of_suite({"quick": True, "transport": transports})
    return {job.benchmark.name: job.settings["transport"] for job in jobs}


def test_a_suite_uses_the_transports_with_a_benchmark_s_patterns() -> None:
    transports_by_benchmark = suite_transports("memory", "amqp", "tcp", "zeromq+ipc")

    assert transports_by_benchmark.keys() == set(names())
    for name, transports in transports_by_benchmark.items():
        has_pairs = name not in WITHOUT_PAIRS
        assert ("memory" in transports) is has_pairs, name
        assert ("tcp" in transports) is has_pairs, name
        assert "amqp" in transports, name
        assert "zeromq+ipc" in transports, name


def test_a_suite_without_transports_uses_each_benchmark_s_defaults() -> None:
    assert list(suite_transports()["latency"]) == ["zeromq", "tcp"]


def test_too_few_open_files_for_a_benchmark_refuse_that_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: with --transport, the whole suite was refused."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (150, 150))
    jobs = list(jobs_of_suite({"quick": True, "transport": ("amqp", "zeromq")}))
    assert {job.benchmark.name for job in jobs} == set(names())
    refused: dict[str, str] = {}
    for job in jobs:
        try:
            plan_of(job.benchmark, job.settings)
        except UserError as error:
            refused[job.benchmark.name] = str(error)
    assert refused["supply-chain"].startswith("the broker needs ")
    assert "raise the limit with ulimit -n " in refused["supply-chain"]
    assert "de-spsc" not in refused


def test_a_suite_over_an_unknown_transport_is_refused() -> None:
    with pytest.raises(UserError, match="unknown transport 'pigeon'"):
        suite_transports("pigeon")


def test_a_benchmark_of_many_sizes_has_a_plan_over_a_network() -> None:
    benchmark = benchmark_of("supply-chain")
    assert len(plan_of(benchmark, settings(benchmark, "--network gige --transport amqp")).cells) == 1


@pytest.mark.parametrize("transport", [["zeromq", "tcp"], "zeromq"], ids=["of a benchmark", "of a capacity"])
def test_a_repeated_benchmark_drops_a_delivery_that_was_ignored(transport: object) -> None:
    """Older records have settings that none of their transports has; such records were refused."""
    record = {"settings": {"transport": transport, "delivery": "lossy", "repeats": 7}}
    again = settings_again(record, benchmark_of("de-spsc"))
    assert (again["delivery"], again["repeats"]) == (None, 7)


@pytest.mark.parametrize(("transports", "delivery"), [(["zeromq"], None), (["zeromq", "amqp"], "lossy"), ([], "lossy")])
def test_a_repeated_suite_keeps_a_delivery_of_one_of_its_transports(
    transports: list[str], delivery: str | None
) -> None:
    """A suite without transports is measured over AMQP, too."""
    again = settings_again({"settings": {"transport": transports, "delivery": "lossy"}}, None)
    assert again.get("delivery") == delivery
    assert list(jobs_of_suite({"quick": True, **again}))


@pytest.fixture
def only_good_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every benchmark but `good` fails, as batch-size fails with `--nagle broker`."""

    def measure(benchmark: Any, *_: object) -> dict[str, object]:
        if benchmark.name != "good":
            raise UserError(f"{benchmark.name} has no broker")
        return {"benchmark": benchmark.name, "status": "complete", "reasons": [], "caveats": []}

    monkeypatch.setattr(suite_module, "measure_benchmark", measure)


def measured_suite(*names_of_benchmarks: str) -> dict[str, Any]:
    jobs = []
    for name in names_of_benchmarks:
        benchmark: Any = SimpleNamespace(name=name)
        jobs.append(SuiteJob(benchmark, {}))
    return measure_suite(jobs, {}, "suite", Brokers(), lambda _: None)


def test_a_suite_continues_after_a_benchmark_failed_and_says_so_at_once(
    only_good_can_be_measured: None, capsys: pytest.CaptureFixture[str]
) -> None:
    record = measured_suite("first", "good")
    assert record["status"] == "partial"
    assert record["reasons"] == ["first: first has no broker"]
    begins, fails, *_ = capsys.readouterr().err.splitlines()
    assert (begins, fails) == ("benchmark 1 of 2, first", "first: first has no broker")


def test_a_suite_of_failed_benchmarks_raises_the_last_error(only_good_can_be_measured: None) -> None:
    with pytest.raises(UserError, match="other has no broker"):
        measured_suite("first", "other")


def test_a_suite_says_which_benchmark_of_how_many_begins(
    only_good_can_be_measured: None, capsys: pytest.CaptureFixture[str]
) -> None:
    measured_suite("first", "good", "good")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "benchmark 1 of 3, first"
    assert lines[2].startswith("benchmark 2 of 3, good; about ")
    assert lines[3].endswith(" left")
