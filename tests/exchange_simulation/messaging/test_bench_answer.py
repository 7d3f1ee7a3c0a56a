"""The answer of a benchmark: whether transports differ, by how much, and how sure that is."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from exchange_simulation.messaging.network_sentences import network_sentences
from exchange_simulation.messaging.report import _headline, _sentences, is_long, page_html, short, show
from exchange_simulation.messaging.verdicts import comparison_of, with_verdicts
from exchange_simulation.outcomes import Benchmark


def row(transport: str, values: list[float], figure: str = "messages_per_s", **point: Any) -> dict[str, Any]:
    """A cell with a repeat for each value."""
    return {
        "transport": transport,
        "point": {"size_bytes": 64, **point},
        "words": transport,
        "figures": {figure: {"median": median(values), "low": min(values), "high": max(values), "n": len(values)}},
        "repeats": [
            {"repeat": number, "status": "complete", "reasons": [], "figures": {figure: value}}
            for number, value in enumerate(values, 1)
        ],
    }


def record(*rows: dict[str, Any], benchmark: str = "de-spsc") -> dict[str, Any]:
    return {"benchmark": benchmark, "rows": list(rows), "settings": {"repeats": 6}, "status": "complete", "reasons": []}


SLOW = [100.0, 101.0, 99.0, 102.0, 100.0, 98.0]
FAST = [400.0, 404.0, 399.0, 402.0, 404.0, 398.0]
LIKE_SLOW = [101.0, 99.0, 100.5, 99.5, 102.0, 98.0]


@pytest.mark.parametrize(
    ("value", "words"),
    [(9_994, "9,994"), (10_000, "10.0 k"), (50_400, "50.4 k"), (999_400, "999 k"), (3_070_000, "3.07 M")],
)
def test_a_large_number_keeps_three_digits(value: float, words: str) -> None:
    assert short(value) == words


def test_the_headline_of_one_point_has_ratio_interval_and_repeats() -> None:
    headline = _headline(record(row("amqp", SLOW), row("zeromq", FAST)))
    assert headline == "zeromq carries 4.0 times as much as amqp (4.0..4.1), in 6 of 6 repeats (messages/s)"


def test_the_headline_of_several_points_has_the_range_of_ratios() -> None:
    rows = [row("amqp", SLOW), row("zeromq", FAST)]
    larger = [row("amqp", SLOW, size_bytes=128), row("zeromq", [2 * value for value in FAST], size_bytes=128)]
    headline = _headline(record(*rows, *larger))
    assert headline == "zeromq carries 4.0 to 8.0 times as much as amqp in 2 of 2 cases (messages/s)"


def test_equal_transports_do_not_differ() -> None:
    verdict = only_verdict(record(row("amqp", SLOW), row("zeromq", LIKE_SLOW)))
    assert verdict["outcome"] == "cannot tell"
    assert verdict["sentence"].startswith("cannot tell: amqp / zeromq is 1.0")


def test_the_python_api_gives_the_verdicts_of_a_benchmark() -> None:
    outcome = Benchmark(Path("nowhere"), record(row("amqp", SLOW), row("zeromq", FAST)))

    [verdict] = outcome.verdicts

    assert verdict.differs
    assert (verdict.metric, verdict.block) == ("de-spsc messages_per_s", "64 B")
    assert (verdict.first, verdict.second) == ("de-spsc, amqp, 64 B", "de-spsc, zeromq, 64 B")
    assert verdict.ratio == pytest.approx(0.25, rel=0.02)
    assert verdict.sentence.startswith("zeromq carries 4.0 times as much as amqp")


def only_verdict(benchmark_record: dict[str, Any]) -> dict[str, Any]:
    [verdict] = comparison_of(benchmark_record)["verdicts"]
    return verdict


def test_five_repeats_are_too_few_for_a_verdict() -> None:
    """Five repeats agree by chance in 6 % of all cases."""
    five_repeats = record(row("amqp", SLOW[:5]), row("zeromq", FAST[:5]))
    sentence = "cannot tell from 5 repeats, 6 are needed: amqp / zeromq was 0.25 in them"
    assert _headline(five_repeats) == f"{sentence} (messages/s)"
    judged = with_verdicts({**five_repeats, "caveats": ["the machine was busy"]})
    assert [caveat.partition(":")[0] for caveat in judged["caveats"]] == [
        "5 repeats cannot reach a verdict",
        "the machine was busy",
    ]
    assert judged["statistics"]["repeats_needed"] == 6
    assert [verdict["sentence"] for verdict in judged["verdicts"]] == [sentence]


def test_a_verdict_has_the_compared_rows_and_its_p() -> None:
    [verdict] = with_verdicts({**record(row("amqp", SLOW), row("zeromq", FAST)), "caveats": []})["verdicts"]
    assert verdict["benchmark"] == "de-spsc"
    assert verdict["figure"] == "messages_per_s"
    assert verdict["point"] == {"size_bytes": 64}
    assert verdict["first"] == "amqp"
    assert verdict["second"] == "zeromq"
    assert verdict["outcome"] == "differ"
    assert verdict["repeats"] == [1, 2, 3, 4, 5, 6]
    assert verdict["low"] < verdict["ratio"] < verdict["high"] < 1
    assert verdict["p_corrected"] <= 0.05


def test_verdicts_of_a_record_are_shown_unchanged() -> None:
    judged = with_verdicts({**record(row("amqp", SLOW), row("zeromq", FAST)), "caveats": []})
    judged["verdicts"][0]["sentence"] = "as another version judged it"
    assert _headline(judged) == "as another version judged it (messages/s)"


def test_all_points_of_a_suite_are_one_family() -> None:
    part = record(row("amqp", SLOW), row("zeromq", FAST))
    other = record(*part["rows"], benchmark="throughput")
    suite = {"name": "first", "status": "complete", "reasons": [], "parts": [part, other], "rows": [], "settings": {}}
    judged = with_verdicts({**suite, "caveats": []})
    assert judged["statistics"]["rows"] == 2
    assert [verdict["benchmark"] for verdict in judged["verdicts"]] == ["de-spsc", "throughput"]
    assert _headline(judged) == "zeromq carries 4.0 times as much as amqp in 2 of 2 cases (rates)"


def test_a_transport_that_did_not_keep_its_rate_is_not_compared() -> None:
    verdict = only_verdict(record(row_with_saturated_repeats(4), row("tcp", SLOW, "due_p50_us", rate_per_s=2000)))
    assert verdict["sentence"] == "amqp did not keep its rate (4 of 6 repeats saturated)"


def test_a_transport_with_half_of_its_repeats_saturated_is_compared() -> None:
    verdict = only_verdict(record(row_with_saturated_repeats(3), row("tcp", SLOW, "due_p50_us", rate_per_s=2000)))
    assert verdict["outcome"] == "differ"


def row_with_saturated_repeats(count: int) -> dict[str, Any]:
    saturated_row = row("amqp", FAST, "due_p50_us", rate_per_s=2000)
    for repeat in saturated_row["repeats"][:count]:
        repeat["saturated"] = ["too late"]
    return saturated_row


def test_times_are_compared_if_the_rate_was_given() -> None:
    """Regression: rates were compared, which are equal if both transports are offered the same rate."""
    amqp = row("amqp", FAST, "due_p50_us", rate_per_s=2000)
    zeromq = row("zeromq", SLOW, "due_p50_us", rate_per_s=2000)
    assert _headline(record(amqp, zeromq)).startswith("amqp takes 4.0 times as long as zeromq (")


def test_rows_at_a_given_rate_are_not_compared_if_others_are_floods() -> None:
    floods = [row("amqp", SLOW, rate_per_s="max"), row("zeromq", FAST, rate_per_s="max")]
    paced = [row("amqp", SLOW, rate_per_s=2000), row("zeromq", FAST, rate_per_s=2000)]
    assert only_verdict(record(*floods, *paced))["point"]["rate_per_s"] == "max"


def test_the_terminal_draws_each_ratio_with_its_interval(capsys: pytest.CaptureFixture[str]) -> None:
    show(record(row("amqp", SLOW), row("zeromq", FAST)))
    printed = capsys.readouterr().out
    assert "messages/s: amqp / zeromq" in printed
    assert re.search(r"64 B .*\*.*0\.25 \(0\.2\d\.\.0\.2\d\) +6 of 6", printed)


def test_values_common_to_all_rows_stand_once_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
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


def record_of_one_transport(sizes: int, repeats: int = 1) -> dict[str, Any]:
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


def test_the_answer_for_one_transport_has_its_lowest_and_highest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(record_of_one_transport(sizes=3))
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "amqp, messages/s: 10 (9..11) at 2 B, to 30 (29..31) at 8 B"


def test_the_reason_of_a_partial_benchmark_is_first_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    show({**record_of_one_transport(sizes=3), "status": "partial", "reasons": ["interrupted"]})
    output = capsys.readouterr().out
    assert output.startswith("partial: interrupted\n")
    assert output.count("interrupted") == 1


@pytest.mark.parametrize("whole", [True, False])
def test_each_reason_of_a_partial_suite_is_there_once(whole: bool, capsys: pytest.CaptureFixture[str]) -> None:
    part = {**record_of_one_transport(sizes=3), "status": "partial", "reasons": ["interrupted"]}
    suite = {
        "name": "first",
        "status": "partial",
        "parts": [part],
        "reasons": ["de-pp: the disk is full", "de-spsc: interrupted"],
    }
    show(suite, whole)
    output = capsys.readouterr().out
    assert output.startswith("partial: de-pp: the disk is full\n")
    assert output.count("disk is full") == 1
    assert output.count("interrupted") == 1


def test_a_suite_s_page_names_a_benchmark_that_failed_and_a_part_s_reasons_once() -> None:
    """Regression: a benchmark that measured nothing was missing on the page without a word."""
    part = {**record_of_one_transport(sizes=3), "status": "partial", "reasons": ["interrupted"]}
    page = page_html(
        {
            "name": "first",
            "status": "partial",
            "parts": [part],
            "reasons": ["supply-chain: too few descriptors", "de-spsc: interrupted"],
            "rows": [],
            "settings": {},
            "host": {},
            "versions": {},
        }
    )
    assert page.count("<li>partial: supply-chain: too few descriptors</li>") == 1
    assert page.count("interrupted</li>") == 1


@pytest.mark.parametrize(("sizes", "whole", "has_table"), [(60, False, True), (61, False, False), (61, True, True)])
def test_a_table_of_over_60_rows_is_printed_by_exchange_report_only(
    capsys: pytest.CaptureFixture[str], sizes: int, whole: bool, has_table: bool
) -> None:
    record = record_of_one_transport(sizes)
    show(record, whole)
    assert bool(re.search(r"^ *8 B  amqp", capsys.readouterr().out, re.MULTILINE)) is has_table
    assert is_long(record) is (sizes > 60)


def at_rates(transport: str, p50_us: float, saturated: int) -> list[dict[str, Any]]:
    """Two points of a transport; each point has two repeats, of which `saturated` were saturated."""
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


@pytest.mark.parametrize(
    ("saturated", "points"), [(2, "64 B; 1 KiB"), (1, "64 B (1 of 2 repeats); 1 KiB (1 of 2 repeats)")]
)
def test_one_sentence_names_all_saturated_points_of_a_transport(saturated: int, points: str) -> None:
    sentences = _sentences({"benchmark": "de-spsc", "rows": at_rates("amqp", 300.0, saturated)})
    assert sentences == [f"amqp, saturated at 2 of 2 points: {points}. At the first, too late"]


def test_one_sentence_names_every_flag_of_the_network() -> None:
    network = {"profile": "gige", "mechanism": "wire", "round_trip_us": {}, "flags": ["round trips took long", "lost"]}
    *_, last_sentence = _sentences({"benchmark": "de-spsc", "rows": [], "networks": [network]})
    assert last_sentence == "gige is not the network that was asked for: round trips took long; lost"


def test_the_round_trip_of_a_network_stands_beside_that_of_its_profile() -> None:
    trips = {"publisher-consumer": {"median": 160.9, "expected": 101.3}, "publisher-broker": {"median": 20.0}}
    network = {"profile": "gige", "mechanism": "wire", "round_trip_us": trips, "flags": []}

    (sentence,) = network_sentences([network])

    assert sentence == (
        "network gige, emulated by wire; round trips, of which the profile alone makes 101 us: "
        "publisher-consumer 161 us; publisher-broker 20 us"
    )
