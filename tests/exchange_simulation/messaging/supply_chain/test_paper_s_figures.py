"""The page draws the paper's figures, one line a group or a kind of location, with the paper's mix beside ours."""

from __future__ import annotations

import re
from typing import Any

from exchange_simulation.messaging.plots import figures_of
from exchange_simulation.messaging.report import page_html
from exchange_simulation.messaging.supply_chain.messages import MESSAGES
from exchange_simulation.messaging.supply_chain.paper_figures import PAPERS_MIX, PUBLISHED
from exchange_simulation.messaging.supply_chain.summary import summary_sentences
from exchange_simulation.messaging.supply_chain.topologies import HORIZONTAL, VERTICAL
from exchange_simulation.reports.drawing.chart import Numbers

FIGURES = ["3", "4", "5", "6", "7", "8", "9"]
"""Numbers of the paper's figures that the page draws."""
KINDS = {"supermarket", "distribution centre", "supplier", "headquarters"}
GROUPS = {"group a", "group b", "group c", "group d"}


def row(topology: str, base: int) -> dict[str, Any]:
    """A cell whose groups have the paper's shares of messages; a group's messages/s is its share times the base."""
    values: dict[str, float] = {}
    for kind in ("SM", "DC", "SP", "HQ"):
        values[f"{kind}_locations"] = base
    for group, share in PAPERS_MIX[topology].items():
        values[f"{group}_percent"] = share.messages
        values[f"{group}_per_s"] = share.messages * base
        values[f"{group}_kb_per_s"] = base
    figures = {name: {"median": value, "low": None, "high": None, "n": 1} for name, value in values.items()}
    return {"transport": "amqp", "point": {"topology": topology, "base": base}, "figures": figures, "repeats": []}


def drawn_numbers() -> dict[str, Numbers]:
    """The numbers that the page draws for both topologies, by the number of the paper's figure."""
    rows = [row(HORIZONTAL, 10), row(HORIZONTAL, 20), row(VERTICAL, 10), row(VERTICAL, 20)]
    numbers: dict[str, Numbers] = {}
    for figure in figures_of({"benchmark": "supply-chain", "rows": rows}):
        number_in_title = re.search(r"\(figure (\d+)\)", figure.title)
        if number_in_title:
            numbers[number_in_title[1]] = figure.chart.numbers
    return numbers


def line_names(numbers: Numbers) -> set[object]:
    return {name for name, *_ in numbers.rows}


def curve(numbers: Numbers, line: str) -> list[tuple[object, object]]:
    """(x, median) of each point of a line."""
    return [(x, median) for name, x, median, *_ in numbers.rows if name == line]


def test_each_figure_of_the_paper_is_drawn_with_its_lines() -> None:
    numbers = drawn_numbers()

    assert sorted(numbers) == FIGURES
    assert line_names(numbers["3"]) == KINDS
    for figure in FIGURES[1:]:
        assert line_names(numbers[figure]) == GROUPS


def test_a_figure_draws_only_its_topology() -> None:
    vertical_messages = drawn_numbers()["8"]

    # the vertical share of group a, 14.19 %, times the base
    assert curve(vertical_messages, "group a") == [(10, 141.9), (20, 283.8)]


def test_an_interaction_that_never_ended_has_no_time() -> None:
    """Regression: the sentence said "within nan ms"."""
    figures = {"interaction_3_per_s": {"median": 0.0}, "interaction_3_off_plan_percent": {"median": -100.0}}

    sentences = list(summary_sentences([{"transport": "amqp", "figures": figures, "words": "amqp", "repeats": []}]))

    assert sentences[-1].endswith("-100.00 % off the plan; none ended within the measured time")


def test_an_interaction_of_few_messages_shows_the_slowest_and_no_percentile() -> None:
    figures = {
        "interaction_2_per_s": {"median": 9.0},
        "interaction_2_off_plan_percent": {"median": 1.0},
        "interaction_2_last_messages": {"median": 12.0},
        "interaction_2_max_ms": {"median": 3.5},
    }

    sentences = list(summary_sentences([{"transport": "amqp", "figures": figures, "words": "amqp", "repeats": []}]))

    assert sentences[-1].endswith("+1.00 % off the plan; the slowest of 12 last messages came 3.5 ms after due")


def test_values_of_tables_4_and_5_stand_beside_ours() -> None:
    vertical_row = row(VERTICAL, 10)
    vertical_row["words"] = "amqp, vertical"
    size = {"median": 2.5, "low": None, "high": None, "n": 1}
    vertical_row["figures"] |= {"order_kb": size, "offer_kb": size}
    record = {
        "name": "first",
        "benchmark": "supply-chain",
        "rows": [vertical_row],
        "reasons": [],
        "left_out": [],
        "status": "complete",
        "settings": {"topology": [VERTICAL]},
        "host": {},
        "versions": {},
    }

    page = page_html(record)

    assert "<td>order: kB on average (table 4)</td><td>2.34</td><td>2.5</td>" in page
    assert "<td>vertical, group a: % of messages (table 5; its target)</td><td>14.19 (15.00)</td><td>14.19</td>" in page
    assert "horizontal, group a" not in page, "no cell of it was measured"


def test_table_4_stands_in_the_papers_order_with_the_average_behind_the_sizes() -> None:
    titles = [value.title for value in PUBLISHED if "(table 4)" in value.title]

    assert titles[:4] == [
        "orderConf: kB, sizes 1, 2 and 3 (table 4), ours of the plan",
        "orderConf: kB on average (table 4)",
        "statInfoOrderDC: kB, sizes 1, 2 and 3 (table 4), ours of the plan",
        "statInfoOrderDC: kB on average (table 4)",
    ]


def test_a_cell_with_a_failed_repeat_has_not_passed() -> None:
    """Regression: the sentence said "passed, 1 of 1" although a repeat had failed."""
    right = {"reasons": []}
    failed = {"reasons": ["10 messages had not come"]}
    cell = {"transport": "amqp", "figures": {"delivered_per_s": {"median": 1.0}}, "words": "amqp"}

    first_sentence, *_ = summary_sentences([{**cell, "repeats": [right, failed]}, {**cell, "repeats": [right, right]}])

    assert first_sentence == "passed, 1 of 2: amqp"


def test_sizes_stand_beside_the_papers_topologies_alone() -> None:
    """Regression: the averages of table 4 stood beside the sizes of a user's file."""
    sizes = [value for value in PUBLISHED if "(table 4)" in value.title]
    assert len(sizes) > len(MESSAGES)
    for value in sizes:
        assert value.fits is not None, value.title
        assert value.fits({"topology": ("vertical",)})
        assert not value.fits({"topology": ("freeform",)})
