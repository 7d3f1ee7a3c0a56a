"""The figures that a benchmark's rows make."""

from __future__ import annotations

from typing import Any

from matplotlib.colors import to_hex

from exchange_simulation.messaging.plots import drawings_of, figures_of
from exchange_simulation.messaging.report import tile_of
from exchange_simulation.reports.drawing.canvas import page_style


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


def test_lines_of_several_networks_are_divided_into_a_figure_for_each_network() -> None:
    """Figures 5b to 5d of the paper: a line for each number of consumers."""
    estimate = {"median": 1e3, "low": None, "high": None}
    rows = []
    for consumers in (1, 2, 4, 8, 16, 32):
        for network in ("gige", "local"):
            for size in (1 << step for step in range(21)):
                point = {"size_bytes": size, "consumers": consumers, "network": network}
                rows.append({"transport": "amqp", "point": point, "figures": {"published_per_s": estimate}})

    figures = list(figures_of({"benchmark": "fe-spmc", "rows": rows}))

    assert [figure.title.rpartition(", ")[2] for figure in figures] == ["gige", "local"]
    for figure in figures:
        assert {line[0] for line in figure.chart.numbers.rows} == {
            "1 consumer",
            *(f"{consumers} consumers" for consumers in (2, 4, 8, 16, 32)),
        }


def test_rows_without_a_size_are_left_out_of_a_plot_along_the_size() -> None:
    """Regression: such a row was a KeyError."""
    without_size = rows_of_pairs([1])[0]
    del without_size["point"]["size_bytes"]
    rows = [*rows_of_pairs([1 << step for step in range(21)]), without_size]
    (figure,) = figures_of({"benchmark": "de-mpmc", "rows": rows})
    assert figure.chart.numbers.columns[:2] == ("series", "size_bytes")
    assert len(figure.chart.numbers.rows) == 4 * 21


def test_rows_that_lack_the_value_in_which_the_others_differ_have_a_figure() -> None:
    """Regression: such a row was an IndexError."""
    rows = []
    for variant in ("a", "b", "c", "d", "e", "f", "g", "h", None):
        for size in (64, 128):
            row_of_variant = row(size)
            if variant is not None:
                row_of_variant["point"]["variant"] = variant
            rows.append(row_of_variant)
    titles = [figure.title for figure in figures_of({"benchmark": "de-spsc", "rows": rows})]
    first_plot = titles[: len(titles) // 3]
    assert [title.rpartition(", ")[2] for title in first_plot[:8]] == list("abcdefgh")
    assert first_plot[8].endswith(", tcp")


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


def rows_of_request_reply() -> list[dict[str, Any]]:
    """Return rows that make eight lines: two transports, two ways to match, two numbers of clients."""
    estimate = {"median": 1e3, "low": 9e2, "high": 2e3}
    rows = []
    for transport in ("amqp", "zeromq"):
        for match in ("indexed", "scan"):
            for clients in (1, 4):
                for threads in (1, 8):
                    point = {"match": match, "clients": clients, "threads": threads, "size_bytes": 1024, "preloaded": 0}
                    rows.append({"transport": transport, "point": point, "figures": {"replies_per_s": estimate}})
    return rows


def test_no_two_lines_of_a_figure_have_the_same_colour() -> None:
    with page_style():
        figure, *_ = figures_of({"benchmark": "request-reply", "rows": rows_of_request_reply()})
        colours = {text.get_text(): to_hex(text.get_color()) for text in figure.chart.axes.texts}
    colours_of_lines = [colour for name, colour in colours.items() if name.startswith(("amqp", "zeromq"))]
    assert len(colours_of_lines) == 8
    assert len(set(colours_of_lines)) == 8


def test_no_label_ends_outside_the_drawing() -> None:
    with page_style():
        figure, *_ = figures_of({"benchmark": "request-reply", "rows": rows_of_request_reply()})
        axes = figure.chart.axes
        width = figure.chart.figure.bbox.width
        outside = [text.get_text() for text in axes.texts if text.get_window_extent().x1 > width]
    assert "zeromq, indexed, 4 clients" in {text.get_text() for text in axes.texts}
    assert outside == []


def test_the_tile_of_a_suite_shows_no_figure_but_its_own() -> None:
    """Regression: the tile "transfers/s" of perftest showed its only drawing, the processors by second."""
    seconds = [{"second": second, "user_percent": 50.0 + second} for second in range(3)]
    estimate = {"median": 1e3, "low": 9e2, "high": 2e3}
    perftest = {
        "transport": "amqp",
        "point": {"queues": 10},
        "figures": {"transfers_per_s": estimate},
        "repeats": [{"series": seconds}],
    }
    record = {"benchmark": "perftest", "rows": [perftest]}
    drawings = drawings_of(record)
    assert len(drawings) == 1
    assert tile_of(record, drawings).title == "transfers/s"
    assert tile_of(record, drawings).drawing is None


def test_a_tile_names_the_transport_if_its_drawing_shows_one_alone() -> None:
    rows = [row for row in rows_of_request_reply() if row["transport"] == "zeromq"]
    record = {"benchmark": "request-reply", "rows": rows}
    tile = tile_of(record, drawings_of(record))
    assert tile.title == "replies/s, zeromq"
    assert tile.drawing is not None


def test_one_cell_of_the_supply_chain_has_a_figure_of_its_interactions() -> None:
    figures = {f"interaction_{n}_p90_ms": {"median": 2.0 * n, "low": None, "high": None} for n in (5, 6, 7)}
    row = {"transport": "zeromq", "point": {"topology": "vertical", "base": 10}, "figures": figures}
    (figure,) = figures_of({"benchmark": "supply-chain", "rows": [row]})
    assert [(line[1], line[2]) for line in figure.chart.numbers.rows] == [(5, 10.0), (6, 12.0), (7, 14.0)]
