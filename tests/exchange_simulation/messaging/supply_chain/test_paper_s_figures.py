"""The page draws the paper's figures: a line for each group, for each kind of location, with its mix beside ours."""

from __future__ import annotations

from typing import Any

from exchange_simulation.messaging.plots import figures_of
from exchange_simulation.messaging.report import page_html
from exchange_simulation.messaging.supply_chain.in_words import PAPERS_MIX, by_interaction
from exchange_simulation.messaging.supply_chain.topologies import HORIZONTAL, VERTICAL


def row(topology: str, base: int) -> dict[str, Any]:
    found: dict[str, float] = {f"{kind}_locations": base for kind in ("SM", "DC", "SP", "HQ")}
    for group, (messages, _) in PAPERS_MIX[topology].items():
        found |= {f"{group}_percent": messages, f"{group}_per_s": messages * base, f"{group}_kb_per_s": base}
    figures = {name: {"median": value, "low": None, "high": None, "n": 1} for name, value in found.items()}
    return {"transport": "amqp", "point": {"topology": topology, "base": base}, "figures": figures, "repeats": []}


def test_each_figure_of_the_paper_has_its_lines_and_only_its_topology() -> None:
    rows = [row(topology, base) for topology in (HORIZONTAL, VERTICAL) for base in (10, 20)]
    drawn = {each.title: each.chart.numbers for each in figures_of({"benchmark": "supply-chain", "rows": rows})}
    numbers = {title.partition("(figure ")[2][:1]: found for title, found in drawn.items() if "(figure" in title}
    assert sorted(numbers) == list("3456789")
    kinds = {"supermarket", "distribution centre", "supplier", "headquarters"}
    assert {line[0] for line in numbers["3"].rows} == kinds
    for name in "456789":
        assert {line[0] for line in numbers[name].rows} == {f"group {group}" for group in "abcd"}
    assert [line[1:3] for line in numbers["8"].rows if line[0] == "group a"] == [(10, 141.9), (20, 283.8)]


def test_an_interaction_of_which_none_ended_has_no_time() -> None:
    """Its sentence said "within nan ms"."""
    found = {"interaction_3_per_s": 0.0, "interaction_3_off_plan_percent": -100.0}
    figures = {name: {"median": value} for name, value in found.items()}
    (*_, said) = by_interaction([{"transport": "amqp", "figures": figures, "words": "amqp", "repeats": []}])
    assert said.endswith("-100.00 % off the plan; none ended within the measured time")


def test_what_tables_4_and_5_print_stands_beside_ours() -> None:
    vertical_only = row(VERTICAL, 10)
    size = {"median": 2.5, "low": None, "high": None, "n": 1}
    vertical_only["figures"] |= {"order_kb": size, "offer_kb": size}
    vertical_only |= {"words": "amqp, vertical"}
    record = {
        "name": "it",
        "benchmark": "supply-chain",
        "rows": [vertical_only],
        "reasons": [],
        "left_out": [],
        "status": "complete",
        "settings": {},
        "host": {},
        "versions": {},
    }
    page = page_html(record)
    assert "<td>order: kB on average (table 4)</td><td>2.34</td><td>2.5</td>" in page
    assert "<td>vertical, group a: % of messages (table 5)</td><td>14.19</td><td>14.19</td>" in page
    assert "<td>horizontal, group a: % of messages (table 5)</td><td>37.46</td><td></td>" in page


def test_a_cell_of_which_a_repeat_failed_has_not_passed() -> None:
    """It said "passed, 1 of 1" under an invalid record."""
    right, failed = {"reasons": []}, {"reasons": ["10 messages had not come"]}
    row = {"transport": "amqp", "figures": {"delivered_per_s": {"median": 1.0}}, "words": "amqp"}
    said = list(by_interaction([{**row, "repeats": [right, failed]}, {**row, "repeats": [right, right]}]))
    assert said[0] == "passed, 1 of 2: amqp"
