"""A capacity as people read it: one answer, whatever its kind, in the terminal and on the page."""

from __future__ import annotations

import html
from typing import Any

import pytest

from exchange_simulation.reports.capacity.page import page_html
from exchange_simulation.reports.capacity.table import headline, show

PROBE = {
    "run": "001-64000",
    "orders_per_s": 64_000.0,
    "holds": False,
    "why": "saturated: " + "orders were growing, " * 4,
    "log_ratio": 0.5,
    "noise_share": 0.123,
    "completion_us": {"due": {"p50": 120.0, "p99": 4_321.0}},
    "lag_us": {"p99": 99.0},
}
HELD = {**PROBE, "run": "002-30000", "orders_per_s": 30_000.0, "holds": True, "why": None, "log_ratio": -0.5}
ESTIMATE = {"value": 40_123.0, "low": 35_987.0, "high": 45_111.0}
CURVE = [
    {"orders_per_s": 30_000.0, "value": 0.9, "low": 0.45, "high": 0.9},
    {"orders_per_s": 64_000.0, "value": 0.1, "low": 0.05, "high": 0.1},
]


def record(estimate: Any, highest_held: float | None, lowest_failed: float | None, **changed: Any) -> dict[str, Any]:
    """A capacity's record, whose estimate is None if none was found."""
    return {
        "name": "it",
        "status": "complete",
        "started_at": "2026-11-22T22:00:00+00:00",
        "objective": "p99 <= 1ms",
        "needed_orders": 1_000,
        "settings": {"transport": "tcp"},
        "search": {"precision": 0.05},
        "flags": [],
        "capacity_orders_per_s": estimate,
        "probes": [PROBE, HELD],
        "host": {},
        "versions": {},
        "searches": [],
        "answer": {
            "kind": "found",
            "highest_held_orders_per_s": highest_held,
            "lowest_failed_orders_per_s": lowest_failed,
        },
        "reach_orders_per_s": {"low": 101.0, "high": 1e6},
        "curve": CURVE if estimate else [],
        **changed,
    }


RECORDS_AND_SENTENCES = [
    (
        record(ESTIMATE, 30_000, 64_000),
        "tcp holds p99 <= 1ms up to 40,100 orders/s (95% interval 36,000..45,100;",
    ),
    (
        record(None, 118_345, None),
        "tcp's capacity for p99 <= 1ms is above 118,000 orders/s: the highest rate tried",
    ),
    (
        record(None, 30_000, None),
        "tcp's capacity for p99 <= 1ms is above 30,000 orders/s: the probes ended before 64,000 orders/s was decided",
    ),
    (
        record({**ESTIMATE, "low": 1_234.0}, 30_000, 64_000),
        "tcp's capacity for p99 <= 1ms is somewhere in 1,230..45,100 orders/s (95% interval; 2 probes, too few",
    ),
    (
        record(None, None, 101.0, probes=[{**PROBE, "orders_per_s": 101.0}, HELD]),
        "tcp's capacity for p99 <= 1ms is below 101 orders/s: at every rate in reach most probes failed",
    ),
    (
        record(None, None, 4_000, probes=[{**PROBE, "orders_per_s": 4_000.0}]),
        "tcp's capacity for p99 <= 1ms is below 4,000 orders/s: at every rate tried most probes failed",
    ),
    (
        record(None, None, 64_000),
        "tcp's capacity for p99 <= 1ms is below 64,000 orders/s: the probes ended before 30,000 orders/s was decided",
    ),
    (record(None, None, None, probes=[]), "nothing is known of tcp's capacity for p99 <= 1ms: 0 probes"),
]


@pytest.mark.parametrize(("of_answer", "sentence"), RECORDS_AND_SENTENCES)
def test_every_kind_of_answer_is_one_sentence(of_answer: dict[str, Any], sentence: str) -> None:
    assert headline(of_answer).startswith(sentence)
    assert html.escape(sentence).replace("&#x27;", "&#39;") in page_html(of_answer)


@pytest.mark.parametrize(
    ("highest_held", "lowest_failed", "sentence"),
    [
        (None, 101.0, "was below 101 orders/s: at every rate in reach most probes failed (1 probe)"),
        (118_345, None, "was above 118,000 orders/s: the highest rate tried held (1 probe)"),
    ],
)
def test_a_bound_from_noisy_probes_is_no_answer(
    highest_held: float | None, lowest_failed: float | None, sentence: str
) -> None:
    noisy_probe = {**PROBE, "orders_per_s": 101.0, "noise_share": 0.4}
    redone = record(None, highest_held, lowest_failed, probes=[noisy_probe], redo_noisy={"most_tries": 3})
    assert headline(redone) == f"too noisy to say: beside other work tcp's capacity for p99 <= 1ms {sentence}"
    assert headline(redone | {"redo_noisy": None}) == f"tcp's capacity for p99 <= 1ms {sentence.replace('was', 'is')}"


def test_the_answer_is_printed_first_and_noise_beside_each_rate(capsys: pytest.CaptureFixture[str]) -> None:
    show(record(ESTIMATE, 30_000, 64_000))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tcp holds p99 <= 1ms")
    row = next(line for line in lines if "64,000" in line)
    assert row.split()[:8] == ["64,000", "0", "of", "1", "120", "4,321", "99", "12%"]


def test_the_method_says_who_judges_a_probe_of_a_benchmark() -> None:
    """A probe that the benchmark calls complete fails if it misses the user's objective."""
    of_user = record(ESTIMATE, 30_000, 64_000, benchmark="round-trip", subject="round-trip over tcp", columns={})
    assert "messages, since ten must lie beyond the percentile" in page_html(of_user)
    assert "if the benchmark calls" in page_html(of_user | {"needed_orders": 0})


def test_a_page_of_an_older_version_s_record_shows_what_it_has() -> None:
    old = record({"value": 61_234.0, "low": None, "high": None}, None, None)
    probe = {name: PROBE[name] for name in PROBE.keys() - {"log_ratio", "noise_share"}}
    for name in ("answer", "curve", "reach_orders_per_s", "needed_orders"):
        del old[name]
    page = page_html({**old, "probes": [probe], "searches": [{}]})
    assert "tcp holds p99 &lt;= 1ms up to 61,234 orders/s: 1 search" in page
    assert "older version" in page
