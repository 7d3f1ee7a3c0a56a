"""The statistics of claims on curves: straight or bent, and an overhead that grows or stays."""

from __future__ import annotations

import pytest

from exchange.json_records import Record
from exchange_simulation.launching.record.noise_summary import TOO_NOISY, NoiseSummary, noise_banner
from exchange_simulation.papers.claims import (
    CANNOT_TELL,
    DOES_NOT_HOLD,
    HOLDS,
    NOT_MEASURED,
    Claim,
    Statistic,
    claim_as_dict,
    judge_claims,
)
from exchange_simulation.papers.readings import NOTHING, FigureReading
from exchange_simulation.papers.sentences import headline, in_readers_order, outcome_in_words, seen
from exchange_simulation.papers.statistics import (
    NO_REPEAT_LEFT,
    constant,
    figure_at,
    figure_at_highest,
    if_as_long_as,
    largest,
    largest_metric,
    metric_of,
    quotient,
    ratio,
    smallest_ratio,
    straightness,
    sum_of,
    undisturbed,
    with_rise_of,
)

AT = (8, 32, 64)
STRAIGHT_US = {8: 20.0, 32: 44.0, 64: 76.0}
FLAT_US = dict.fromkeys(AT, 20.0)
BENT_UPWARDS_US = {8: 20.0, 32: 24.0, 64: 76.0}


def record_of(**curves_us: dict[int, float]) -> Record:
    """A part's record with a curve for each transport, by size."""
    rows = []
    for transport, curve_us in curves_us.items():
        for size, us in curve_us.items():
            repeat = {"repeat": 1, "status": "complete", "noise": None, "figures": {"us": us}}
            rows.append({"transport": transport, "point": {"size_bytes": size}, "repeats": [repeat]})
    return {"settings": {"repeats": 1, "transport": list(curves_us)}, "rows": rows}


@pytest.mark.parametrize(
    ("curve_us", "expected"),
    [(STRAIGHT_US, 1.0), (FLAT_US, 1.0), (BENT_UPWARDS_US, 24.0 / 44.0)],
    ids=["straight", "flat", "bent upwards"],
)
def test_a_straight_line_has_its_middle_between_its_ends(curve_us: dict[int, float], expected: float) -> None:
    statistic = straightness("", "part", "us", "size_bytes", AT)

    assert statistic.read({"part": record_of(tcp=curve_us)}).values == {1: pytest.approx(expected)}


@pytest.mark.parametrize("networks", [["gige", "local"], ["local", "gige"]])
def test_a_claim_reads_the_papers_own_transport_and_loopback_unless_it_names_a_network(networks: list[str]) -> None:
    rows = []
    for network in networks:
        for transport, us in (("amqp", 1.0), ("nats", 9.0)):
            of_network = us * 2 if network == "gige" else us
            repeat = {"repeat": 1, "status": "complete", "noise": None, "figures": {"us": of_network}}
            point = {"size_bytes": 8, "network": network}
            rows.append({"transport": transport, "point": point, "repeats": [repeat]})
    record = {"settings": {"repeats": 1, "network": networks, "transport": ["amqp", "nats"]}, "rows": rows[::-1]}

    assert largest("us")(record).values == {1: 1.0}
    assert figure_at("us", size_bytes=8)(record).values == {1: 1.0}
    assert figure_at("us", size_bytes=8, network="gige")(record).values == {1: 2.0}


def test_the_highest_value_measured_is_read_whatever_the_order_of_the_cells() -> None:
    record = record_of(tcp={8: 6.0, 64: 2.0, 32: 3.0})

    assert figure_at_highest("size_bytes", "us", above=8)(record).values == {1: 2.0}
    assert figure_at_highest("size_bytes", "us", above=8, network="gige")(record).values == {}
    assert figure_at_highest("size_bytes", "us", above=8)(record_of(tcp={8: 6.0})) == NOTHING


def test_a_claim_on_a_network_that_was_not_measured_reads_nothing() -> None:
    record = record_of(amqp={8: 1.0})

    assert figure_at("us", size_bytes=8, network="gige")(record).values == {}


def test_a_sum_and_a_quotient_are_of_the_repeats_that_measured_both() -> None:
    record = record_of(tcp={8: 6.0, 32: 3.0})
    record["rows"][0]["repeats"].append({**record["rows"][0]["repeats"][0], "repeat": 2})
    large, small = figure_at("us", size_bytes=8), figure_at("us", size_bytes=32)

    assert sum_of(large, small)(record).values == {1: 9.0}
    assert quotient(large, small)(record).values == {1: 2.0}
    assert sum_of(large, figure_at("us", size_bytes=99))(record).values == {}


def test_a_run_that_is_too_short_for_a_claim_says_why_nothing_can_be_told() -> None:
    read = if_as_long_as(100.0, figure_at("us", size_bytes=8), "too few large messages came")
    claim = Claim("", "", ratio("", "part", read, constant(1.0)), at_most=1.0)
    record = record_of(tcp={8: 6.0})

    (short,) = judge_claims([claim], {"part": {**record, "settings": {**record["settings"], "duration_s": 10.0}}})
    long = claim.statistic.read({"part": {**record, "settings": {**record["settings"], "duration_s": 100.0}}})

    assert (short.outcome, short.why) == (CANNOT_TELL, "too few large messages came")
    assert long.values == {1: 6.0}


def test_a_metric_is_that_of_the_transport_which_a_claim_names() -> None:
    arms = [
        {
            "settings": {"orders_per_s": 8000.0, "nagle": [], "transport": transport},
            "metrics": {"us": {"by_repeat": {"1": us}}},
            "runs": [{"repeat": 1}],
        }
        for transport, us in (("amqp", 9.0), ("zeromq", 2.0))
    ]
    record = {"repeats": 1, "arms": arms}

    assert metric_of("us", 8000.0, nagle=False)(record).values == {1: 9.0}
    assert metric_of("us", 8000.0, nagle=False, transport="zeromq")(record).values == {1: 2.0}


def test_cells_without_a_shared_repeat_are_measured_but_tell_nothing() -> None:
    record = record_of(tcp={8: 6.0, 32: 3.0})
    record["rows"][1]["repeats"][0]["status"] = "invalid"
    statistics = [
        ratio("peak", "part", largest("us"), constant(1.0)),
        ratio("large over small", "part", figure_at("us", size_bytes=32), figure_at("us", size_bytes=8)),
        ratio("not measured", "part", figure_at("us", size_bytes=64), figure_at("us", size_bytes=32)),
    ]

    tested = judge_claims([Claim("", "", statistic, at_most=1.0) for statistic in statistics], {"part": record})

    assert [claim.why for claim in tested] == [NO_REPEAT_LEFT, NO_REPEAT_LEFT, NOT_MEASURED]


def test_the_smallest_ratio_is_that_of_the_cells_where_two_ways_are_closest() -> None:
    rows = []
    for match, us in (("indexed", {1: 8.0, 2: 6.0}), ("scan", {1: 2.0, 2: 3.0})):
        for clients, value in us.items():
            repeat = {"repeat": 1, "status": "complete", "noise": None, "figures": {"rate": value}}
            rows.append({"transport": "amqp", "point": {"match": match, "clients": clients}, "repeats": [repeat]})

    record = {"settings": {"repeats": 1, "transport": ["amqp"]}, "rows": rows}

    assert smallest_ratio("rate", "match", "indexed", "scan")(record).values == {1: 2.0}
    assert smallest_ratio("rate", "match", "indexed", "scan")({**record, "rows": rows[:-1]}) == NOTHING


def test_the_smallest_ratio_is_too_noisy_if_one_of_its_sides_is() -> None:
    rows = []
    for match, share in (("indexed", 0.0), ("scan", 0.4)):
        repeats = [
            {
                "repeat": repeat,
                "status": "complete",
                "noise": {"share_of_all_cpus": share, "window_s": 0.0},
                "figures": {"rate": 1.0},
            }
            for repeat in range(1, 7)
        ]
        rows.append({"transport": "amqp", "point": {"match": match, "clients": 1}, "repeats": repeats})
    record = {"settings": {"repeats": 6, "transport": ["amqp"]}, "redo_noisy": True, "rows": rows}

    noisiest = smallest_ratio("rate", "match", "indexed", "scan")(record).noisiest

    assert noisiest is not None
    assert (noisiest.noisy, noisiest.measurements) == (6, 6)


def test_an_arm_that_was_not_run_yet_is_not_measured() -> None:
    settings = {"orders_per_s": 1000.0, "nagle": [], "transport": "amqp"}
    arm = {"settings": settings, "metrics": {}, "runs": [], "excluded": []}
    failed = {**arm, "excluded": [{"repeat": 1, "status": "invalid"}]}

    assert metric_of("us", 1000.0, nagle=False)({"repeats": 1, "arms": [arm]}) == NOTHING
    assert largest_metric(["us"], nagle=False)({"repeats": 1, "arms": [arm]}) == NOTHING
    assert metric_of("us", 1000.0, nagle=False)({"repeats": 1, "arms": [failed]}).missing == NO_REPEAT_LEFT


def test_the_busiest_component_is_looked_for_at_all_rates() -> None:
    arms = [
        {
            "settings": {"orders_per_s": rate, "nagle": [], "transport": transport},
            "metrics": {name: {"by_repeat": {"1": percent}} for name, percent in (("a", rate), ("b", 10.0))},
            "runs": [{"repeat": 1}],
        }
        for transport, rate in (("amqp", 5.0), ("amqp", 20.0), ("nats", 90.0))
    ]

    assert largest_metric(("a", "b"), nagle=False)({"arms": arms, "repeats": 1}).values == {1: 20.0}


def test_noise_does_not_disturb_a_count() -> None:
    def read(record: Record) -> FigureReading:
        return FigureReading({1: 20.0}, [NoiseSummary.of_shares([0.5])])

    assert read({}).noisiest is not None
    assert undisturbed(read)({}) == FigureReading({1: 20.0})


def test_values_that_are_the_plans_own_are_counted_apart() -> None:
    claims = [{"outcome": HOLDS}, {"outcome": HOLDS, "by_construction": True}]

    assert headline({"claims": claims}) == (
        "1 of 1 claims hold here, 0 do not, 0 cannot be told; 1 of 1 values were delivered as planned"
    )


def test_values_of_the_plan_without_a_verdict_are_not_taken_for_undelivered() -> None:
    claims = [{"outcome": outcome, "by_construction": True} for outcome in (HOLDS, CANNOT_TELL, CANNOT_TELL)]

    assert headline({"claims": claims}) == "1 of 3 values were delivered as planned, 2 cannot be told"


@pytest.mark.parametrize(
    ("by_repeat", "outcome"),
    [({1: 1.0}, HOLDS), ({1: 1.2}, DOES_NOT_HOLD), ({1: 1.0, 2: 0.97}, HOLDS), ({1: 1.0, 2: 1.2}, DOES_NOT_HOLD)],
)
def test_a_value_of_the_plan_is_judged_by_each_repeat(by_repeat: dict[int, float], outcome: str) -> None:
    statistic = Statistic("messages over the plan's", lambda _: FigureReading(by_repeat))
    claim = Claim("table 5", "As planned.", statistic, at_least=0.95, at_most=1.05, by_construction=True)

    (tested,) = judge_claims([claim], {})

    assert tested.outcome == outcome


@pytest.mark.parametrize(("by_repeat", "words"), [({1: 1.0}, "1"), ({1: 0.98, 2: 1.02}, "1 (0.98 to 1.02)")])
def test_what_was_seen_of_a_value_of_the_plan_is_the_range_of_its_repeats(
    by_repeat: dict[int, float], words: str
) -> None:
    statistic = Statistic("messages over the plan's", lambda _: FigureReading(by_repeat))
    claim = Claim("table 5", "As planned.", statistic, at_least=0.95, at_most=1.05, by_construction=True)

    assert seen(claim_as_dict(judge_claims([claim], {})[0])) == words


def test_a_value_that_was_not_delivered_as_planned_is_counted() -> None:
    claims = [{"outcome": outcome, "by_construction": True} for outcome in (HOLDS, DOES_NOT_HOLD)]

    assert headline({"claims": claims}) == "1 of 2 values were delivered as planned, 1 was not"


def too_few(*, as_expected: bool | None, outcome: str = CANNOT_TELL) -> Record:
    """A claim of one repeat, which may also be too noisy."""
    return {"outcome": outcome, "as_expected": as_expected, "repeats": 1, "why": "", "ratio": 1.2, "low": None}


def test_a_headline_says_what_too_few_repeats_showed() -> None:
    claims = [too_few(as_expected=True), too_few(as_expected=True), too_few(as_expected=False)]
    noisy = too_few(as_expected=None, outcome=TOO_NOISY)
    unmeasured = {**too_few(as_expected=None), "why": NOT_MEASURED}

    assert headline({"claims": claims}) == (
        "2 of 3 claims were seen as the paper says in 1 repeat, 1 otherwise; a verdict needs 6"
    )
    assert headline({"claims": [*claims, noisy, unmeasured]}) == (
        "2 of 5 claims were seen as the paper says in 1 repeat, 1 otherwise, 1 was not measured, "
        "1 was too noisy to say; a verdict needs 6"
    )
    untold = {**too_few(as_expected=None), "repeats": 6}
    assert headline({"claims": [*claims, untold]}) == (
        "2 of 4 claims were seen as the paper says in 1 repeat, 1 otherwise, 1 cannot be told; a verdict needs 6"
    )


def test_claims_with_a_verdict_are_counted_beside_one_that_lost_its_repeats() -> None:
    claims = [{"outcome": HOLDS}, too_few(as_expected=True)]

    assert headline({"claims": claims}) == "1 of 2 claims hold here, 0 do not, 1 cannot be told"


def test_a_claim_that_was_not_measured_is_none_that_cannot_be_told() -> None:
    unmeasured = {"outcome": CANNOT_TELL, "why": NOT_MEASURED}
    claims = [{"outcome": HOLDS}, {"outcome": CANNOT_TELL, "why": ""}, unmeasured, unmeasured]

    assert headline({"claims": claims}) == "1 of 4 claims hold here, 0 do not, 1 cannot be told, 2 were not measured"


def test_what_was_seen_otherwise_comes_first_among_claims_without_a_verdict() -> None:
    unmeasured, as_it_says, otherwise = (too_few(as_expected=as_expected) for as_expected in (None, True, False))
    holds = {"outcome": HOLDS}

    record = {"claims": [unmeasured, as_it_says, otherwise, holds]}

    assert in_readers_order(record) == [holds, otherwise, as_it_says, unmeasured]
    assert outcome_in_words(otherwise) == "cannot tell, seen otherwise"
    assert seen(otherwise) == "1.2 in 1 repeat"


@pytest.mark.parametrize(("large_us", "expected"), [(80.0, 1.0), (96.0, 1.2), (64.0, 0.8)])
def test_an_overhead_that_grows_gives_more_than_1(large_us: float, expected: float) -> None:
    """zeromq has 10 us more than tcp for 8 bytes, and would have 70 + 10 us for 64 if that overhead stayed."""
    tcp = {size: figure_at("us", transport="tcp", size_bytes=size) for size in (8, 64)}
    zeromq = {size: figure_at("us", transport="zeromq", size_bytes=size) for size in (8, 64)}
    statistic = ratio("", "part", zeromq[64], with_rise_of(tcp[64], tcp[8], zeromq[8]))
    record = record_of(tcp={8: 20.0, 64: 70.0}, zeromq={8: 30.0, 64: large_us})

    assert statistic.read({"part": record}).values == {1: pytest.approx(expected)}


QUIET_SHARE = 0.01
NOISY_SHARE = 0.4


def noisy_record(noisy_repeats: int, *, keeps_noisy: bool = False) -> Record:
    """A part of two cells with six repeats each; this many of the larger cell's were noisy."""
    rows = []
    for size, noisy in ((8, 0), (64, noisy_repeats)):
        repeats = []
        for repeat in range(1, 7):
            share = NOISY_SHARE if repeat <= noisy else QUIET_SHARE
            noise = {"share_of_all_cpus": share, "window_s": 0.0}
            repeats.append({"repeat": repeat, "status": "complete", "noise": noise, "figures": {"us": size + repeat}})
        rows.append({"transport": "tcp", "point": {"size_bytes": size}, "repeats": repeats})
    settings = {"repeats": 6, "transport": ["tcp"]}
    return {"settings": settings, "redo_noisy": None if keeps_noisy else {"set_aside": 0}, "rows": rows}


SLOWER = Claim(
    "figure 1",
    "Large messages take longer.",
    ratio("us of 64 B over 8 B", "part", figure_at("us", size_bytes=64), figure_at("us", size_bytes=8)),
    at_least=1.0,
)


def test_a_claim_is_too_noisy_if_more_than_half_of_the_measurements_of_a_side_were() -> None:
    (quiet_enough,) = judge_claims([SLOWER], {"part": noisy_record(3)})
    (noisy,) = judge_claims([SLOWER], {"part": noisy_record(4)})

    assert quiet_enough.outcome == HOLDS
    assert noisy.outcome == TOO_NOISY
    assert noisy.ratio is None
    assert "while others took more than 5% of all processors beside 4 of 6 measurements" in noisy.why


def test_noisy_measurements_that_are_kept_on_purpose_decide_a_claim() -> None:
    (tested,) = judge_claims([SLOWER], {"part": noisy_record(6, keeps_noisy=True)})

    assert tested.outcome == HOLDS


def test_the_noise_of_a_peak_is_that_of_all_its_cells() -> None:
    peak = Claim("", "", ratio("largest over 1", "part", largest("us"), constant(1.0)), at_least=1.0)

    (half,) = judge_claims([peak], {"part": noisy_record(6)})

    assert half.outcome == HOLDS


def test_a_claim_on_the_exchange_heeds_the_noise_of_its_runs() -> None:
    by_repeat = {str(repeat): 2.0 for repeat in range(1, 7)}
    arm = {
        "settings": {"orders_per_s": 1000.0, "nagle": [], "transport": "amqp"},
        "metrics": {"p50": {"by_repeat": by_repeat}},
        "runs": [{"repeat": repeat, "share_of_all_cpus": NOISY_SHARE} for repeat in range(1, 7)],
    }
    record = {"repeats": 6, "redo_noisy": {"set_aside": 3}, "arms": [arm]}
    claim = Claim("", "", ratio("", "part", metric_of("p50", 1000.0, nagle=False), constant(1.0)), at_least=1.0)

    (tested,) = judge_claims([claim], {"part": record})

    assert tested.outcome == TOO_NOISY


def test_a_noisy_papers_headline_and_banner_say_so() -> None:
    claims = [{"outcome": HOLDS}, {"outcome": TOO_NOISY}, {"outcome": TOO_NOISY}]
    summary = {"measurements": 10, "noisy": 6, "unknown": 0, "largest_share": 0.92}

    record = {"claims": claims, "noise_summary": summary}

    assert headline(record) == "1 of 3 claims hold here, 0 do not, 0 cannot be told, 2 were too noisy to say"
    assert "beside 6 of 10 measurements, at most 92%" in noise_banner(record, "measurements")
