"""The figures that a benchmark's rows make."""

from __future__ import annotations

from typing import Any

from exchange_simulation.messaging.plots import drawings_of, figures_of


def row(size: int) -> dict[str, Any]:
    estimate = {"median": 1e6 / size, "low": 9e5 / size, "high": 2e6 / size}
    names = ("messages_per_s", "megabytes_per_s", "latency_mean_us")
    return {"transport": "tcp", "point": {"size_bytes": size}, "figures": dict.fromkeys(names, estimate)}


def test_one_size_makes_no_figure() -> None:
    assert list(figures_of({"benchmark": "de-spsc", "rows": [row(64)]})) == []


def test_two_sizes_make_a_figure_of_each_plot() -> None:
    figures = list(figures_of({"benchmark": "de-spsc", "rows": [row(64), row(128)]}))
    assert len(figures) == 3


def test_a_plot_of_sixteen_lines_has_a_figure_for_each_transport() -> None:
    estimate = {"median": 1e3, "low": 9e2, "high": 2e3}
    rows = []
    for transport in ("amqp", "zeromq"):
        for clients in range(1, 9):
            for ahead in (1, 1000):
                point = {"clients": clients, "ahead": ahead}
                rows.append({"transport": transport, "point": point, "figures": {"replies_per_s": estimate}})

    titles = [figure.title for figure in figures_of({"benchmark": "request-reply", "rows": rows})]
    assert [title.partition("(counter-test)")[2] for title in titles] == [", amqp", ", zeromq"]


def rows_of_pairs(sizes: list[int]) -> list[dict[str, Any]]:
    """Rows of de-mpmc: each size with 1, 2, 4 and 8 pairs."""
    estimate = {"median": 1e3, "low": 9e2, "high": 2e3}
    rows = []
    for size in sizes:
        for pairs in (1, 2, 4, 8):
            point = {"size_bytes": size, "pairs": pairs}
            rows.append({"transport": "amqp", "point": point, "figures": {"megabytes_per_s": estimate}})
    return rows


def test_many_sizes_are_an_axis_with_a_line_for_each_number_of_pairs() -> None:
    """Figure 4a of the paper has such lines, from 1 B to 1 MiB."""
    all_sizes = [1 << step for step in range(21)]
    (figure,) = figures_of({"benchmark": "de-mpmc", "rows": rows_of_pairs(all_sizes)})
    assert figure.title == "de-mpmc: Bandwidth of all pairs (figure 4a), amqp"
    assert figure.chart.numbers.columns[:2] == ("series", "size_bytes")
    assert {line[0] for line in figure.chart.numbers.rows} == {"1 pair", "2 pairs", "4 pairs", "8 pairs"}


def test_few_sizes_are_lines_over_the_number_of_pairs() -> None:
    (figure,) = figures_of({"benchmark": "de-mpmc", "rows": rows_of_pairs([64, 1024])})
    assert figure.chart.numbers.columns[:2] == ("series", "pairs")


def test_a_small_number_at_an_axis_keeps_its_digits() -> None:
    """Regression: the number was shortened to 0.00, as coordinates are."""
    estimate = {"median": 0.005, "low": 0.005, "high": 5.0}
    rows = [
        {"transport": "tcp", "point": {"size_bytes": size}, "figures": {"megabytes_per_s": estimate}} for size in (1, 2)
    ]
    (drawing,) = drawings_of({"benchmark": "de-spsc", "rows": rows})
    assert ">0.001</text>" in drawing.svg
