"""The figures of a comparison in the terminal: completion times, and CPU."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.reports.comparison.figures import line_labels
from exchange_simulation.reports.comparison.sentences import completion, cpu_beyond, cpu_metric, in_brackets
from exchange_simulation.reports.comparison.table import _cpu_table, show
from exchange_simulation.reports.formats.estimates import median_text
from exchange_simulation.reports.tables import terminal
from tests.exchange_simulation.reports.comparison.sample_verdicts import P50, verdict


@pytest.mark.parametrize(
    ("figure", "orders"),
    [("p99", 1_000), ("p50", 20), ("p99", None)],
)
def test_a_percentile_of_enough_orders_is_printed(figure: str, orders: int | None) -> None:
    metrics = {f"due_{figure}_us": {"median": 5.0}, "due_max_us": {"median": 7.0}}
    assert completion({"orders_measured": orders, "metrics": metrics}, "due", figure, median_text) == "5"


@pytest.mark.parametrize(("figure", "orders"), [("p99", 999), ("p999", 9_999)])
def test_the_maximum_replaces_a_percentile_of_too_few_orders(figure: str, orders: int) -> None:
    """Too few: less than ten orders are slower than the percentile."""
    metrics = {f"due_{figure}_us": {"median": 5.0}, "due_max_us": {"median": 7.0}}
    cell = completion({"orders_measured": orders, "metrics": metrics}, "due", figure, median_text)
    assert cell == f"7 (max of {orders:,})"


def test_the_maximum_of_a_single_order_is_printed() -> None:
    arm = {"orders_measured": 1, "metrics": {"due_max_us": {"median": 7.0}}}
    assert completion(arm, "due", "max", median_text) == "7"


def arm_over(transport: str, guarantee: str) -> dict[str, Any]:
    return {"contender": transport, "guarantee": guarantee, "settings": {"transport": transport}}


def test_rows_name_guarantees_that_differ_and_a_missing_network() -> None:
    stream = arm_over("redis?kind=stream", "durable, synced once a second")
    channels = arm_over("redis", "lossy")
    floor = arm_over("shm?pace=spin", "lossy")
    unlike = {"arms": [stream, channels, floor]}
    assert in_brackets(stream, unlike["arms"]) == " (durable)"
    assert in_brackets(channels, unlike["arms"]) == " (lossy)"
    assert in_brackets(floor, unlike["arms"]) == " (no network; lossy)"
    alike = {"arms": [channels, floor]}
    assert in_brackets(channels, alike["arms"]) == ""
    assert in_brackets(floor, alike["arms"]) == " (no network)"
    assert line_labels(alike["arms"]) == {"redis": "redis", "shm?pace=spin": "shm?pace=spin (no network)"}


def arm_with_cpu(block: str, **by_repeat: float) -> dict[str, Any]:
    return {"block": block, "metrics": {"cpu_s_per_million": {"by_repeat": by_repeat}}}


def test_cpu_beyond_is_the_difference_to_the_first_arm_in_a_repeat() -> None:
    first = arm_with_cpu("a", one=100.0, two=200.0, three=300.0)
    second = arm_with_cpu("a", one=130.0, two=220.0, four=1.0)
    record = {"arms": [first, second, arm_with_cpu("b", one=7.0)]}
    assert cpu_beyond(record, second) == {"median": 25.0, "by_repeat": {"one": 30.0, "two": 20.0}}
    assert cpu_beyond(record, first) is None


def test_an_arm_without_measured_cpu_has_none_beyond_the_first() -> None:
    unmeasured: dict[str, Any] = {"block": "a", "metrics": {}}
    record = {"arms": [arm_with_cpu("a", one=100.0), unmeasured]}
    assert cpu_beyond(record, unmeasured) is None


@pytest.mark.parametrize(("columns", "blocks"), [("40", 4), ("60", 2), ("200", 1)])
def test_each_block_of_the_table_of_cpu_has_the_title_of_its_figures(
    columns: str, blocks: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: on a narrow terminal the second block had the names of the components alone."""
    monkeypatch.setenv("COLUMNS", columns)
    estimate = {"median": 12.3, "quartiles": [11.9, 12.8], "by_repeat": {"1": 12.3}}
    metrics = {"cpu_s_per_million": estimate}
    for component in COMPONENTS:
        metrics[cpu_metric(component)] = estimate
    arm = {
        "block": "a",
        "contender": "zeromq",
        "settings": {"transport": "zeromq", "orders_per_s": 16_000},
        "metrics": metrics,
    }
    terminal().print(_cpu_table({"arms": [arm], "contenders": ["zeromq"], "verdicts": [verdict(0.5)]}))
    assert capsys.readouterr().out.count("CPU s per million") == blocks


def timed_arm(orders_per_s: int | None) -> dict[str, Any]:
    """Return an arm with a p50: from due, or at rate max, which is None, from handing over."""
    metric = "handed_over_p50_us" if orders_per_s is None else P50
    return {
        "label": "tcp",
        "block": "a",
        "contender": "tcp",
        "settings": {"transport": "tcp", "orders_per_s": orders_per_s},
        "saturated": 0,
        "runs": {},
        "orders_measured": 5_000,
        "held": True,
        "metrics": {metric: {"median": 12.3, "by_repeat": {"1": 12.3}}},
    }


@pytest.mark.parametrize(
    ("rates", "clock"),
    [([1_000], "p50 us from due"), ([None], "from handing over"), ([1_000, None], "from handing over")],
)
def test_times_at_rate_max_are_called_from_handing_over(
    rates: list[int | None], clock: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [timed_arm(orders_per_s) for orders_per_s in rates]
    show({"study": "sweep", "arms": arms, "contenders": ["tcp"], "verdicts": [], "caveats": [], "metrics": {}})
    text = " ".join(capsys.readouterr().out.split())
    assert clock in text
    assert ("p50 us from due" in text) == (None not in rates)
