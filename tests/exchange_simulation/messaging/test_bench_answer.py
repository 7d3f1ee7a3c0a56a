"""The sentence above a benchmark's table: how far two transports are apart."""

from __future__ import annotations

import re
from typing import Any

import pytest

from exchange_simulation.messaging.report import _sentences, is_long, show
from exchange_simulation.messaging.results import answer


def record(amqp: tuple[float | None, float | None], zeromq: tuple[float | None, float | None]) -> dict[str, Any]:
    rows = [
        {
            "transport": transport,
            "point": {"size_bytes": 64},
            "figures": {"messages_per_s": {"median": median, "low": ends[0], "high": ends[1]}},
        }
        for transport, median, ends in (("amqp", 100.0, amqp), ("zeromq", 400.0, zeromq))
    ]
    return {"benchmark": "de-spsc", "rows": rows}


@pytest.mark.parametrize(("high", "apart"), [(300.0, 1), (350.0, 0)])
def test_it_says_at_how_many_points_the_intervals_are_apart(high: float, apart: int) -> None:
    assert answer([record((90.0, high), (340.0, 410.0))]) == (
        f"zeromq's rates are 4 times amqp's (1 point). The 95 % intervals of the two are apart at {apart} of 1 point."
    )


def test_of_one_repeat_there_is_no_interval_so_none_is_said_to_overlap() -> None:
    assert answer([record((None, None), (None, None))]) == "zeromq's rates are 4 times amqp's (1 point)."


@pytest.mark.parametrize(
    ("repeats", "sentence"),
    [
        (4, ""),
        (5, " The 95 % intervals of the two are apart at 1 of 1 point."),
    ],
)
def test_the_range_of_a_few_repeats_is_no_95_percent_interval(repeats: int, sentence: str) -> None:
    """The range of two repeats, which holds the true median in half of all cases, was called an interval."""
    found = record((90.0, 110.0), (340.0, 410.0))
    for row in found["rows"]:
        row["figures"]["messages_per_s"]["n"] = repeats
    assert answer([found]) == f"zeromq's rates are 4 times amqp's (1 point).{sentence}"


def test_at_rates_that_were_given_the_times_are_compared() -> None:
    """It said that amqp's rates were 1 times zeromq's, where both were offered 2,000 messages/s."""
    found = record((None, None), (None, None))
    for row, due_us in zip(found["rows"], (300.0, 100.0), strict=True):
        row["point"]["rate_per_s"] = 2_000
        row["figures"]["due_p50_us"] = {"median": due_us, "low": None, "high": None}
    assert answer([found]) == "zeromq's times are 0.33 times amqp's (1 point)."


def test_what_all_rows_share_stands_once_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    figure = {"median": 9.0, "low": None, "high": None}
    figures = dict.fromkeys(("replies_per_s", "kilobytes_per_s", "response_mean_us"), figure)
    rows = [
        {
            "transport": "amqp",
            "figures": figures,
            "repeats": [],
            "words": "",
            "point": {"match": "indexed", "clients": clients, "threads": 1, "size_bytes": 1024, "preloaded": 0},
        }
        for clients in (1, 8)
    ]
    show({"benchmark": "request-reply", "rows": rows, "settings": {"repeats": 1}, "status": "complete", "reasons": []})
    printed = capsys.readouterr().out
    assert "clients        replies/s" in printed
    assert "each row: match indexed, threads 1, size 1 KiB, preloaded 0" in printed
    assert "cores in use" not in printed, "none were measured"


def of_one_transport(sizes: int, repeats: int = 1) -> dict[str, Any]:
    rows = [
        {
            "transport": "amqp",
            "point": {"size_bytes": 1 << size},
            "words": "",
            "repeats": [],
            "figures": {"messages_per_s": {"median": 10.0 * size, "low": 10.0 * size - 1, "high": 10.0 * size + 1}},
        }
        for size in range(1, sizes + 1)
    ]
    return {"benchmark": "de-spsc", "rows": rows, "settings": {"repeats": repeats}, "status": "complete", "reasons": []}


def test_of_one_transport_the_first_line_says_where_its_figure_was_lowest_and_highest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(of_one_transport(sizes=3))
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "amqp, messages/s: 10 (9..11) at 2 B, to 30 (29..31) at 8 B"


def test_why_a_benchmark_is_not_complete_is_said_first_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    part = {**of_one_transport(sizes=3), "status": "partial", "reasons": ["interrupted"]}
    show(part)
    said = capsys.readouterr().out
    assert (said.splitlines()[0], said.count("interrupted")) == ("partial: interrupted", 1)
    suite = {
        "name": "first",
        "status": "partial",
        "parts": [part],
        "reasons": ["de-pp: the disk is full", "de-spsc: interrupted"],
    }
    for whole in (True, False):
        show(suite, whole)
        said = capsys.readouterr().out
        assert said.startswith("partial: de-pp: the disk is full\n")
        assert (said.count("disk is full"), said.count("interrupted")) == (1, 1)


@pytest.mark.parametrize(("sizes", "whole", "tables"), [(60, False, True), (61, False, False), (61, True, True)])
def test_a_table_that_fits_no_terminal_is_left_to_the_page_and_to_exchange_report(
    capsys: pytest.CaptureFixture[str], sizes: int, whole: bool, tables: bool
) -> None:
    record = of_one_transport(sizes)
    show(record, whole)
    assert bool(re.search(r"^ *8 B  amqp", capsys.readouterr().out, re.MULTILINE)) is tables
    assert is_long(record) is (sizes > 60)


def at_rates(transport: str, p50_us: float, saturated: int) -> list[dict[str, Any]]:
    """Two points; each has two repeats, of which some were saturated."""
    figures = {"messages_per_s": 2e3, "due_p50_us": p50_us}
    repeats = [{"saturated": ["too late"]}] * saturated + [{"saturated": []}] * (2 - saturated)
    return [
        {
            "transport": transport,
            "point": {"size_bytes": size, "rate_per_s": 2000},
            "words": "",
            "repeats": repeats,
            "figures": {name: {"median": value, "low": None, "high": None} for name, value in figures.items()},
        }
        for size in (64, 1024)
    ]


def test_at_a_rate_transports_are_compared_by_their_time_from_due() -> None:
    rows = [*at_rates("amqp", 300.0, 0), *at_rates("zeromq", 100.0, 0)]
    assert answer([{"benchmark": "de-spsc", "rows": rows}]) == "zeromq's times are 0.33 times amqp's (2 points)."


def test_beside_a_flood_a_given_rate_is_not_compared() -> None:
    rows = [*at_rates("amqp", 300.0, 0), *at_rates("zeromq", 100.0, 0)]
    for flood in (rows[0], rows[2]):
        flood["point"]["rate_per_s"] = "max"
    assert "(1 point)" in answer([{"benchmark": "de-spsc", "rows": rows}])


@pytest.mark.parametrize(
    ("saturated", "points"), [(2, "64 B; 1 KiB"), (1, "64 B (1 of 2 repeats); 1 KiB (1 of 2 repeats)")]
)
def test_one_sentence_names_all_saturated_points_of_a_transport(saturated: int, points: str) -> None:
    found = _sentences({"benchmark": "de-spsc", "rows": at_rates("amqp", 300.0, saturated)})
    assert found == [f"amqp, saturated at 2 of 2 points: {points}. At the first, too late"]


def test_one_sentence_names_all_that_was_wrong_with_the_network() -> None:
    network = {"profile": "gige", "mechanism": "wire", "round_trip_us": {}, "flags": ["round trips took long", "lost"]}
    *_, found = _sentences({"benchmark": "de-spsc", "rows": [], "network": network})
    assert found == "not the network that was asked for: round trips took long; lost"
