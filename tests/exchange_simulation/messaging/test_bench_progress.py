"""The sentences of a benchmark before its start, after each cell, and during a long cell."""

from __future__ import annotations

import pytest

from exchange_simulation.messaging.benchmark_record import _announce
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell_turns import _report_progress
from exchange_simulation.messaging.flow import ConsumeShared
from exchange_simulation.messaging.measuring import COMPLETE, progress_of
from exchange_simulation.messaging.roles import Role, Sharing
from exchange_simulation.messaging.setup import check_cells, plan_of
from exchange_simulation.reports import progress
from tests.exchange_simulation.messaging.test_plan import settings


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        (
            "request-reply",
            "--transport amqp --clients 1..8 --threads 1,15 --sizes 64,1KiB --warm-up 1 --sample 2",
            "32 cells of up to 9 roles, measured 6 times: about 11 min 17 s",
        ),
        (
            "te-spsc",
            "--transport amqp --consumers each --patterns 8 --sizes 64 --repeats 1",
            "1 cell of up to 9 roles, measured 1 time: about 4 s",
        ),
        (
            "de-spsc",
            "--sizes 64 --rate 100,200 --seconds 60 --repeats 2",
            "4 cells of up to 2 roles, measured 2 times: about 8 min 6 s",
        ),
        (
            "de-spsc",
            "--sizes 64 --rate 100 --count 6000 --repeats 1 --transport amqp",
            "1 cell of up to 2 roles, measured 1 time: about 1 min 3 s",
        ),
        (
            "request-reply",
            "--clients 6 --threads 1 --preload 0,5 --network gige --transport amqp --sample 60 --repeats 1",
            "1 cell of up to 7 roles, measured 1 time: about 1 min 4 s\n"
            "request-reply: left out, amqp: --network is gige, where nothing can be preloaded",
        ),
    ],
)
def test_a_benchmark_first_says_about_how_long_it_takes(
    name: str, words: str, sentence: str, capsys: pytest.CaptureFixture
) -> None:
    benchmark = benchmark_of(name)
    settings_of_words = settings(benchmark, words)
    plan = plan_of(benchmark, settings_of_words)
    role_counts = check_cells(benchmark, plan.cells)

    _announce(benchmark, plan, role_counts, int(str(settings_of_words["repeats"])), None)

    assert capsys.readouterr().err == f"{name}: {sentence}\n"


@pytest.mark.parametrize(
    ("left_s", "ending"), [(59.9, "123 messages/s"), (200.0, "123 messages/s; about 3 min 20 s left")]
)
def test_a_cell_names_the_time_left_from_a_minute_on(left_s: float, ending: str, capsys: pytest.CaptureFixture) -> None:
    benchmark = benchmark_of("de-spsc")
    (cell,) = plan_of(benchmark, settings(benchmark, "--sizes 64 --transport memory")).cells
    record = {"status": COMPLETE, "reasons": [], "figures": {"messages_per_s": 123.0}}
    _report_progress(benchmark, cell, 2, record, left_s, is_made_again=False)
    assert capsys.readouterr().err == f"de-spsc 2: memory, 64 B: {ending}\n"


def role(name: str, shares: Sharing | None) -> Role:
    return Role(name, ConsumeShared(256, 1, 0.0), (), shares=shares)


def test_progress_counts_the_messages_of_all_queues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0)
    monkeypatch.setattr("exchange_simulation.messaging.measuring.COUNT_EVERY_S", 0)
    first_queue = Sharing("queue 1", 600)
    second_queue = Sharing("queue 2", 600)
    roles = [
        role("subscriber 1", first_queue),
        role("subscriber 2", first_queue),
        role("subscriber 3", second_queue),
        role("subscriber 4", second_queue),
    ]
    with progress_of("perftest", roles) as on_count:
        on_count(5)
    assert capsys.readouterr().err == "perftest: 5 of 1,200 messages delivered\n"


def test_roles_without_a_shared_queue_show_no_progress(capsys: pytest.CaptureFixture) -> None:
    with progress_of("de-spsc", [role("consumer", None)]) as on_count:
        on_count(5)
    assert capsys.readouterr().err == ""
