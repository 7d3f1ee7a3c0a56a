"""Which benchmarks there are, which cells each measures, and over which transports a suite measures them."""

from __future__ import annotations

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
from exchange_simulation.messaging.options import settings_again, settings_in_words
from exchange_simulation.messaging.setup import _settled, check_cells, plan_of
from exchange_simulation.messaging.suite import jobs_of_suite, record_of_suite
from transports.base import Pattern

NO_PAIRS = {"perftest", "fe-spmc", "te-spsc", "request-reply", "supply-chain"}
"""Benchmarks whose links join more than two."""


def settings(benchmark: BenchmarkDefinition, words: str) -> dict[str, object]:
    return dict(settings_in_words(benchmark, words.split())[0])


def test_a_benchmark_that_is_made_again_has_the_delivery_that_it_had() -> None:
    """Its record leaves out the options that were left open, and no --delivery at all meant durable."""
    benchmark = benchmark_of("de-spsc")
    first = settings(benchmark, "--transport amqp --sizes 8")
    recorded = {
        name: list(value) if isinstance(value, tuple) else value for name, value in settings_given(first).items()
    }
    again = settings_again({"settings": recorded}, benchmark)
    assert _settled("amqp", again).delivery == _settled("amqp", first).delivery == "lossy"
    assert (again["sizes"], again["count"]) == ((8,), None)


def points(words: str, transport: str) -> Sequence[tuple[str, int]]:
    benchmark = benchmark_of("request-reply")
    plan = plan_of(benchmark, settings(benchmark, words))
    return [(cell.point["match"], cell.point["preloaded"]) for cell in plan.cells if cell.transport == transport]


def test_a_benchmark_is_left_out_over_transports_without_its_queue() -> None:
    """It is said that it was left out."""
    words = "--clients 6 --threads 1 --match indexed,scan --preload 0,50"
    assert points(words, "amqp") == [("indexed", 0), ("scan", 0), ("indexed", 50), ("scan", 50)]
    assert points(words, "zeromq") == [("indexed", 0)]
    benchmark = benchmark_of("request-reply")
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
        points("--match scan", "zeromq")


def test_a_rate_that_no_link_carries_is_left_out_and_said_once() -> None:
    benchmark = benchmark_of("de-spsc")
    words = "--sizes 8,16KiB,32KiB,64KiB --rate 2000,8000,max --network gige --transport amqp"
    plan = plan_of(benchmark, settings(benchmark, words))
    measured = [(cell.size, cell.rate_per_s) for cell in plan.cells]
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
def test_room_is_asked_for_every_cell_and_nothing_is_opened_for_that(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_socket(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket", no_socket)
    needed: list[int] = []
    monkeypatch.setattr(
        "exchange_simulation.messaging.setup.check_descriptors", lambda number, _who: needed.append(number)
    )
    benchmark = benchmark_of(name)
    cells = plan_of(benchmark, settings(benchmark, "--quick")).cells
    check_cells(benchmark, cells)
    assert len(needed) == len(cells)
    assert min(needed) >= 2


def test_a_benchmark_has_its_file_s_name_whatever_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = de_spsc.BENCHMARK
    monkeypatch.setattr(de_spsc, "BENCHMARK", replace(declared, name="another"))
    assert benchmark_of("de-spsc").name == "de-spsc"
    assert [benchmark_of(name).name for name in names()] == names()


def test_a_suite_gives_the_supply_chain_no_delivery() -> None:
    """Each group of its messages has a delivery of its own."""
    jobs = jobs_of_suite({"quick": True, "delivery": "confirmed", "transport": ()})
    with_delivery = {benchmark.name for benchmark, settings in jobs if settings.get("delivery")}
    assert set(names()) - with_delivery == {"supply-chain"}


def test_the_settings_of_a_suite_s_parts_do_not_say_where_the_outcome_goes() -> None:
    """They said `results` and no JSON, whatever the user had asked of the suite."""
    (_, settings), *_ = jobs_of_suite({"quick": True, "transport": ()})
    assert not {"results", "name", "as_json"} & settings.keys()


def in_suite(*transports: str) -> dict[str, Sequence[str]]:
    """The transports of each benchmark of a suite over these; over the defaults if there are none."""
    jobs = jobs_of_suite({"quick": True, "transport": transports})
    return {benchmark.name: settings["transport"] for benchmark, settings in jobs}


def test_a_suite_uses_the_transports_with_a_benchmark_s_patterns() -> None:
    everything, pairs = set(names()), {"memory", "tcp"}
    found = in_suite("memory", "amqp", "tcp", "zeromq+ipc")
    assert found.keys() == everything
    assert {name for name, transports in found.items() if pairs <= set(transports)} == everything - NO_PAIRS
    assert {name for name, transports in found.items() if pairs & set(transports)} == everything - NO_PAIRS
    assert all({"amqp", "zeromq+ipc"} <= set(transports) for transports in found.values())


def test_a_suite_s_benchmarks_are_over_their_own_defaults_if_it_names_none() -> None:
    assert list(in_suite()["latency"]) == ["zeromq", "tcp"]


def test_a_suite_over_an_unknown_transport_is_refused() -> None:
    with pytest.raises(UserError, match="unknown transport 'pigeon'"):
        in_suite("pigeon")


def test_a_benchmark_of_many_sizes_has_a_plan_over_a_network() -> None:
    benchmark = benchmark_of("supply-chain")
    assert len(plan_of(benchmark, settings(benchmark, "--network gige --transport amqp")).cells) == 1


@pytest.mark.parametrize("transport", [["zeromq", "tcp"], "zeromq"], ids=["of a benchmark", "of a capacity"])
def test_a_repeated_benchmark_drops_a_delivery_that_was_ignored(transport: object) -> None:
    """It was refused: older records have settings that none of their transports has."""
    record = {"settings": {"transport": transport, "delivery": "lossy", "repeats": 7}}
    again = settings_again(record, benchmark_of("de-spsc"))
    assert (again["delivery"], again["repeats"]) == (None, 7)


@pytest.mark.parametrize(("transports", "delivery"), [(["zeromq"], None), (["zeromq", "amqp"], "lossy"), ([], "lossy")])
def test_a_repeated_suite_keeps_a_delivery_of_one_of_its_transports(
    transports: list[str], delivery: str | None
) -> None:
    """A suite that names no transport is measured over AMQP, too."""
    again = settings_again({"settings": {"transport": transports, "delivery": "lossy"}}, None)
    assert again.get("delivery") == delivery
    assert list(jobs_of_suite({"quick": True, **again}))


def test_a_suite_goes_on_after_its_first_benchmark_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--nagle broker` ended at batch-size, which has no broker, and nothing was measured."""

    def record_of(benchmark: str, *_: object) -> dict[str, object]:
        if benchmark != "good":
            raise UserError(f"{benchmark} has no broker")
        return {"benchmark": benchmark, "status": "complete", "reasons": [], "caveats": []}

    def suite(*benchmarks: str) -> dict[str, object]:
        jobs: Any = [(SimpleNamespace(name=each), {}) for each in benchmarks]
        return record_of_suite(jobs, {}, "it", Brokers(), lambda _: None)

    monkeypatch.setattr(suite_module, "record_of", lambda benchmark, *rest: record_of(benchmark.name, *rest))
    found = suite("first", "good")
    assert (found["status"], found["reasons"]) == ("partial", ["first: first has no broker"])
    with pytest.raises(UserError, match="other has no broker"):
        suite("first", "other")
