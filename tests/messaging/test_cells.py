"""Which cells a benchmark measures, and which a transport has nothing for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cli.bench import command_of
from messaging.benchmark import Benchmark
from messaging.benchmarks import benchmark_of, names
from messaging.options import settings_of
from messaging.setup import check_cells, plan_of
from runs.errors import UserError
from transports.pattern import Pattern


def asked(benchmark: Benchmark, words: str) -> dict[str, object]:
    with command_of(benchmark).make_context(benchmark.name, words.split()) as context:
        return dict(settings_of(benchmark, context.params))


def points(words: str, transport: str) -> Sequence[tuple[str, int]]:
    benchmark = benchmark_of("request-reply")
    plan = plan_of(benchmark, asked(benchmark, words))
    return [(cell.point["match"], cell.point["preloaded"]) for cell in plan.cells if cell.transport == transport]


def test_what_a_transport_has_no_queue_for_is_left_out_over_it_alone_and_said() -> None:
    words = "--clients 6 --threads 1 --match indexed,scan --preload 0,50"
    assert points(words, "amqp") == [("indexed", 0), ("scan", 0), ("indexed", 50), ("scan", 50)]
    assert points(words, "zeromq") == [("indexed", 0)]
    benchmark = benchmark_of("request-reply")
    plan = plan_of(benchmark, asked(benchmark, words))
    assert plan.left_out == [
        "zeromq: no queue that could be scanned or preloaded (--match indexed --preload 0 needs none)"
    ]
    assert plan.patterns(benchmark, "zeromq") == [Pattern.REQUESTS]
    assert plan.patterns(benchmark, "amqp") == [Pattern.REQUESTS, Pattern.SCAN]


def test_points_are_measured_over_each_transport_in_turn() -> None:
    benchmark = benchmark_of("de-spsc")
    plan = plan_of(benchmark, asked(benchmark, "--sizes 8,64 --transport amqp,zeromq"))
    assert [(cell.transport, cell.size) for cell in plan.cells] == [
        ("amqp", 8), ("zeromq", 8), ("amqp", 64), ("zeromq", 64),
    ]  # fmt: skip


def test_a_transport_over_which_nothing_can_be_measured_is_refused() -> None:
    with pytest.raises(UserError, match="zeromq: no queue that could be scanned"):
        points("--match scan", "zeromq")


@pytest.mark.parametrize("name", names())
def test_room_is_asked_for_every_cell_and_nothing_is_opened_for_that(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_socket(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket", no_socket)
    needed: list[int] = []
    monkeypatch.setattr("messaging.setup.check_descriptors", lambda number, _who: needed.append(number))
    benchmark = benchmark_of(name)
    cells = plan_of(benchmark, asked(benchmark, "--quick")).cells
    check_cells(benchmark, cells)
    assert len(needed) == len(cells)
    assert min(needed) >= 2
