"""The sentences of the papers as claims: each can come out either way, and reads cells that are measured."""

from __future__ import annotations

import shlex
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from exchange.json_records import Record
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.options import settings_from_words
from exchange_simulation.messaging.point import in_each_network
from exchange_simulation.papers.capacity_part import CapacityPart
from exchange_simulation.papers.catalogue import PAPERS
from exchange_simulation.papers.claims import CANNOT_TELL, DOES_NOT_HOLD, HOLDS, Claim, Statistic, judge_claims
from exchange_simulation.papers.extent import FULL, QUICK, Extent
from exchange_simulation.papers.paper import BenchPart, Paper, TrialPart
from exchange_simulation.papers.readings import NOTHING, FigureReading

REPEATS = 6
NOISE = 0.002
CLAIMS = [(paper, claim) for paper in PAPERS.values() for claim in paper.claims]
IDS = [f"{paper.name}, {claim.statistic.words}" for paper, claim in CLAIMS]


def planted(claim: Claim, ratio: float, repeats: int = REPEATS) -> Claim:
    """The claim with a statistic that is `ratio` in each repeat, but for a little noise."""
    noise = np.random.default_rng(1).normal(0, NOISE, repeats)
    values = {repeat + 1: ratio * exp(noise[repeat]) for repeat in range(repeats)}
    return replace(claim, statistic=Statistic(claim.statistic.words, lambda _records: FigureReading(values)))


def allowed_ratio(claim: Claim) -> float:
    """A ratio that the claim's sentence allows."""
    if claim.at_least is None:
        assert claim.at_most is not None
        return claim.at_most / 2
    if claim.at_most is None:
        return claim.at_least * 2
    return exp((log(claim.at_least) + log(claim.at_most)) / 2)


def contradicting_ratio(claim: Claim) -> float:
    if claim.at_most is not None:
        return claim.at_most * 2
    assert claim.at_least is not None
    return claim.at_least / 2


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=IDS)
def test_a_claim_holds_for_an_allowed_ratio_and_not_for_its_opposite(paper: Paper, claim: Claim) -> None:
    others = [planted(other, allowed_ratio(other)) for other in paper.claims if other is not claim]

    allowed = judge_claims([planted(claim, allowed_ratio(claim)), *others], {})
    opposite = judge_claims([planted(claim, contradicting_ratio(claim)), *others], {})

    assert allowed[0].outcome == HOLDS
    assert opposite[0].outcome == DOES_NOT_HOLD


def test_a_ratio_at_its_bound_cannot_be_told() -> None:
    claim = Claim("", "", Statistic("", lambda _records: NOTHING), at_most=1.0)

    (tested,) = judge_claims([planted(claim, 1.0)], {})

    assert tested.outcome == CANNOT_TELL
    assert tested.why == "the interval reaches over the bound"


@pytest.mark.parametrize(("repeats", "words"), [(1, "1 repeat"), (5, "5 repeats")])
@pytest.mark.parametrize(("ratio", "as_expected"), [(0.1, True), (1.1, False)])
def test_too_few_repeats_cannot_be_told(repeats: int, words: str, ratio: float, as_expected: bool) -> None:
    claim = Claim("", "", Statistic("", lambda _records: NOTHING), at_most=1.0)

    (tested,) = judge_claims([planted(claim, ratio, repeats=repeats)], {})

    assert tested.outcome == CANNOT_TELL
    assert tested.why == f"{words}, and a verdict needs 6"
    assert tested.as_expected is as_expected


def test_two_repeats_have_the_value_between_them() -> None:
    claim = Claim("", "", Statistic("", lambda _records: FigureReading({1: 1.0, 2: 9.0})), at_most=1.0)

    (tested,) = judge_claims([claim], {})

    assert tested.ratio == pytest.approx(3.0)


def test_a_part_that_is_missing_cannot_be_told() -> None:
    paper = PAPERS["amqp"]

    assert {tested.why for tested in judge_claims(paper.claims, {})} == {"not measured"}


@pytest.mark.parametrize(
    ("bounds", "network", "sentence"),
    [
        ({}, "", "can never fail"),
        ({"at_least": 0.0}, "", "can never fail"),
        ({"at_least": 2.0, "at_most": 1.0}, "", "can never hold"),
        ({"at_most": 0.0}, "", "can never hold"),
        ({"at_least": 1.0}, "gige", "does not name the network gige"),
    ],
)
def test_a_claim_that_cannot_come_out_either_way_is_refused(
    bounds: dict[str, float], network: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Claim("1", "Fast.", Statistic("us over 1", lambda _records: NOTHING), network=network, **bounds)


def test_two_claims_with_one_statistic_are_refused() -> None:
    paper = PAPERS["mrg"]

    with pytest.raises(ValueError, match="two claims of mrg have one statistic"):
        replace(paper, claims=[*paper.claims, paper.claims[0]])


def test_there_are_thirty_claims_and_more() -> None:
    assert len(CLAIMS) >= 30


@pytest.mark.parametrize("extent", [QUICK, FULL], ids=["quick", "full"])
@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_claim_reads_cells_that_its_part_measures(paper: Paper, extent: Extent) -> None:
    records = {part.name: as_if_measured(part, paper, extent) for part in paper.parts}

    claims = [claim for claim in paper.claims if not (extent.quick and claim.network)]  # --quick has loopback alone
    readings = {claim.statistic.words: claim.statistic.read(records) for claim in claims}
    unread = [words for words, reading in readings.items() if len(reading.values) < REPEATS and not reading.missing]
    too_short = [words for words, reading in readings.items() if reading.missing]

    assert unread == []
    assert all(extent.quick and "% of kB" in words for words in too_short)


def as_if_measured(part: object, paper: Paper, extent: Extent) -> Record:
    """A record with every cell of the part, in which every figure that a claim of the paper reads is 1 or more."""
    if isinstance(part, TrialPart):
        return exchange_record(part, extent)
    if isinstance(part, CapacityPart):
        return {}  # no claim reads it
    assert isinstance(part, BenchPart)
    benchmark = benchmark_of(part.benchmark)
    options = part.quick if extent.quick else part.full
    settings, _ = settings_from_words(benchmark, [*shlex.split(options), "--repeats", str(part.repeats)])
    rows = []
    for transport in settings["transport"]:
        for point in in_each_network(benchmark.points(settings), settings):
            # The value differs from cell to cell, so that a figure rises along sizes and along pairs.
            value = float(point.get("size_bytes", 1)) + float(point.get("pairs", 1))
            repeats = [repeat_with(value, number) for number in range(1, part.repeats + 1)]
            rows.append({"transport": transport, "point": dict(point), "repeats": repeats})
    recorded = {
        "repeats": part.repeats,
        "network": list(settings["network"]),
        "transport": list(settings["transport"]),
        "duration_s": settings.get("duration_s"),
    }
    return {"settings": recorded, "rows": rows}


def repeat_with(value: float, number: int) -> Record:
    return {"repeat": number, "status": "complete", "noise": None, "figures": EveryFigure(value).named()}


class EveryFigure:
    """The figures that claims read, all with one value."""

    NAMES = (
        "messages_per_s", "megabytes_per_s", "megabits_per_s", "broker_cores", "publisher_cores", "round_trip_p50_us",
        "published_per_s", "publishes_per_s", "deliveries_per_s", "transfers_per_s", "user_percent", "system_percent",
        "one_way_mean_us", "between_arrivals_ns", "stream_between_arrivals_ns", "replies_per_s", "kilobytes_per_s",
        "delivered_per_s", "SM_messages_per_s", "statInfoSM_kb", "kb_per_s", "broker_switches_per_message",
        "client_cores",
        *(f"{group}{ending}" for group in "abcd" for ending in ("_percent", "_kb_percent", "_per_s", "_kb_per_s")),
    )  # fmt: skip

    def __init__(self, value: float) -> None:
        self._value = value

    def named(self) -> dict[str, float]:
        return dict.fromkeys(self.NAMES, self._value)


def exchange_record(part: TrialPart, extent: Extent) -> Record:
    metrics = (
        "orders_per_s", "mean_message_bytes", "handed_over_mean_us", "broker_cpu_percent", "packets_per_order",
        "packet_bytes", "packet_gap_us", "gateway_cpu_percent", "engine_cpu_percent",
        "sampled_orders_sent_per_s", "sampled_orders_received_per_s", "sampled_messages_sent_per_s",
        "sampled_messages_received_per_s",
    )  # fmt: skip
    by_repeat = {str(repeat): 1.0 for repeat in range(1, part.repeats + 1)}
    arms = [
        {
            "settings": arm.settings.as_dict(),
            "metrics": {metric: {"by_repeat": by_repeat} for metric in metrics},
            "runs": [{"repeat": repeat} for repeat in range(1, part.repeats + 1)],
        }
        for arm in part.plan(extent).arms
    ]
    return {"repeats": part.repeats, "arms": arms}
