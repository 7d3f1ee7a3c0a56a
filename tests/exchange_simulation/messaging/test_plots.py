"""Which figures a benchmark's rows give."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.messaging.plots import drawings_of, figures_of


def row(size: int) -> dict[str, Any]:
    estimate = {"median": 1e6 / size, "low": 9e5 / size, "high": 2e6 / size}
    names = ("messages_per_s", "megabytes_per_s", "latency_mean_us")
    return {"transport": "tcp", "point": {"size_bytes": size}, "figures": dict.fromkeys(names, estimate)}


@pytest.mark.parametrize(("sizes", "figures"), [((64,), 0), ((64, 128), 3)])
def test_one_value_makes_no_curve(sizes: tuple[int, ...], figures: int) -> None:
    record = {"benchmark": "de-spsc", "rows": [row(size) for size in sizes]}
    assert len(list(figures_of(record))) == figures


def test_a_title_names_the_transport_once_where_each_has_a_drawing() -> None:
    """Sixteen lines are too many for one."""
    estimate = {"median": 1e3, "low": 9e2, "high": 2e3}
    rows = [
        {"transport": transport, "point": {"clients": clients, "ahead": ahead}, "figures": {"replies_per_s": estimate}}
        for transport in ("amqp", "zeromq")
        for clients in range(1, 9)
        for ahead in (1, 1000)
    ]
    titles = [figure.title for figure in figures_of({"benchmark": "request-reply", "rows": rows})]
    assert [title.partition("(counter-test)")[2] for title in titles] == [", amqp", ", zeromq"]


def test_many_sizes_are_an_axis_and_not_a_figure_each() -> None:
    """Figure 4a of the paper has a line for each number of pairs, from 1 B to 1 MiB."""
    estimate = {"median": 1e3, "low": 9e2, "high": 2e3}
    rows = [
        {"transport": "amqp", "point": {"size_bytes": size, "pairs": pairs}, "figures": {"megabytes_per_s": estimate}}
        for size in (1 << step for step in range(21))
        for pairs in (1, 2, 4, 8)
    ]
    (figure,) = figures_of({"benchmark": "de-mpmc", "rows": rows})
    assert figure.title == "de-mpmc: Bandwidth of all pairs (figure 4a), amqp"
    assert figure.chart.numbers.columns[:2] == ("series", "size_bytes")
    assert {line[0] for line in figure.chart.numbers.rows} == {"1 pair", "2 pairs", "4 pairs", "8 pairs"}
    few = [row for row in rows if row["point"]["size_bytes"] in {64, 1024}]
    (figure,) = figures_of({"benchmark": "de-mpmc", "rows": few})
    assert figure.chart.numbers.columns[:2] == ("series", "pairs")


def test_a_small_number_at_an_axis_keeps_its_digits() -> None:
    """It was cut to 0.00, as coordinates are cut, which need no more."""
    estimate = {"median": 0.005, "low": 0.005, "high": 5.0}
    rows = [
        {"transport": "tcp", "point": {"size_bytes": size}, "figures": {"megabytes_per_s": estimate}} for size in (1, 2)
    ]
    (drawing,) = drawings_of({"benchmark": "de-spsc", "rows": rows})
    assert ">0.001</text>" in drawing.svg
