"""The arms of an experiment with Nagle's algorithm, and the words and the correction of its verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.estimates import IntervalEstimate
from exchange_simulation.experiments.comparison_arms import nagle_arms
from exchange_simulation.experiments.trials.observations import observe
from exchange_simulation.experiments.trials.plan import TrialPlan, read_plan, write_plan
from exchange_simulation.experiments.trials.study import NAGLE, hurts_or_helps
from exchange_simulation.experiments.trials.verdicts import judge_all, planned_rows, unreachable
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.metrics import packets
from exchange_simulation.repeats.sentences import Finding
from tests.exchange_simulation.experiments.trials.sample_trials import put_all

FULL = {"transports": ["tcp", "zeromq", "amqp"], "rates": [1000.0, 2000.0, 4000.0, 6000.0, 8000.0]}


def planned(repeats: int = 10, roles: tuple[str, ...] = ("all",), **chosen: list) -> TrialPlan:
    wanted = {**FULL, **chosen}
    arms = nagle_arms(wanted["transports"], wanted["rates"], roles, 1.0, {"seed": 1})
    return TrialPlan(arms=arms, repeats=repeats, seed=1, study=NAGLE)


def test_the_level_all_is_every_role_of_the_transport() -> None:
    on = {arm.settings.transport: arm.settings.nagle for arm in planned().arms if arm.contender == "Nagle on"}
    three = ("gateway", "engine", "reporter")
    assert on == {"tcp": three, "zeromq": three, "amqp": (*three, "broker")}
    assert {arm.settings.nagle for arm in planned().arms if arm.contender == "Nagle off"} == {()}


def test_the_level_usual_is_the_broker_if_there_is_one() -> None:
    arms = [arm for arm in planned(roles=("usual",), rates=[1000.0]).arms if arm.settings.nagle]
    on = {arm.settings.transport: arm.settings.nagle for arm in arms}
    assert on == {
        "tcp": ("gateway", "engine", "reporter"),
        "zeromq": ("gateway", "engine", "reporter"),
        "amqp": ("broker",),
    }


def test_a_level_with_a_broker_has_no_arm_without_a_broker() -> None:
    arms = planned(roles=("broker", "gateway+engine"), rates=[1000.0]).arms
    levels = {(arm.settings.transport, arm.contender) for arm in arms}
    assert ("amqp", "Nagle on at broker") in levels
    assert ("tcp", "Nagle on at broker") not in levels
    assert ("tcp", "Nagle on at gateway and engine") in levels
    over = {arm.settings.transport for arm in planned(roles=("broker",), rates=[1000.0]).arms}
    assert over == {"amqp"}, "Nagle off over tcp would be compared with nothing"


def test_every_level_is_compared_with_off_only() -> None:
    pairs = planned(roles=("gateway", "engine", "all"), transports=["tcp"], rates=[1000.0]).compared_arms
    assert [first.contender for first, _ in pairs] == ["Nagle off"] * 3
    assert len({second.contender for _, second in pairs}) == 3


def test_each_level_is_warmed_up_over_each_transport() -> None:
    warm_ups = {(step.arm.contender, step.arm.settings.transport) for step in planned().warm_ups}
    assert len(warm_ups) == len(planned().warm_ups) == 6


def test_six_repeats_of_the_paper_s_rates_can_reach_a_verdict() -> None:
    """The plan has three transports."""
    assert len(planned_rows(planned())) == 30
    assert unreachable(planned(repeats=6)) is None
    assert "5 repeats cannot reach a verdict: 6 are needed" in str(unreachable(planned(repeats=5)))


@pytest.mark.parametrize(
    ("transports", "roles", "message"),
    [
        (["zeromq+ipc"], ["all"], "has no TCP sockets"),
        (["tcp", "tcp"], ["all"], "each once"),
        ([], ["all"], "one or more"),
        (["tcp"], ["gateway+pope"], "'gateway\\+pope' is none"),
        (["tcp", "zeromq"], ["broker"], "--roles broker: there is no such role over tcp, zeromq"),
    ],
)
def test_a_mistake_is_named(transports: list[str], roles: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        nagle_arms(transports, [1000.0], roles, 1.0, {"seed": 1})


def test_a_plan_keeps_its_study(tmp_path: Path) -> None:
    write_plan(tmp_path, planned())
    assert read_plan(tmp_path).study is NAGLE


@pytest.mark.parametrize(
    ("ratio", "message"),
    [
        (IntervalEstimate(0.1, 0.09, 0.11), "Nagle on hurts: 10.0 times slower (9.1..11.1), in 7 of 8 repeats"),
        (IntervalEstimate(1.5, 1.4, 1.6), "Nagle on helps: 1.50 times faster (1.40..1.60), in 1 of 8 repeats"),
    ],
)
def test_a_verdict_says_whether_it_hurts_or_helps_and_how_often(ratio: IntervalEstimate, message: str) -> None:
    finding = Finding(
        wording="",
        first="Nagle off",
        second="Nagle on",
        ratio=ratio,
        repeats=8,
        lower=7,
        higher=1,
        lowest_ratio=ratio.value,
        highest_ratio=ratio.value,
    )
    assert hurts_or_helps(finding) == message


def test_all_metrics_of_a_study_are_one_family(tmp_path: Path) -> None:
    plan = planned(repeats=6, transports=["tcp"], rates=[1000.0])
    slow = {"Nagle off": [100.0 + n for n in range(6)], "Nagle on": [900.0 + n for n in range(6)]}
    put_all(tmp_path, plan, slow)
    assert len(planned_rows(plan)) == 2
    p50, mean = judge_all(plan, observe(tmp_path, plan))
    assert mean.outcome == "not compared", "the made-up runs have none"
    assert p50.outcome == "differ"
    assert "Nagle on hurts: 8.8 times slower" in p50.sentence


def test_packets_of_orders_and_answers_count_once_a_connection() -> None:
    def end(component: str, local: str, peer: str, out: int, came: int) -> dict[str, object]:
        counted = {"segments_out": out, "segments_in": came, "bytes_out": 10 * out, "bytes_in": 10 * came}
        return {"component": component, "local": local, "peer": peer, "tcp_nodelay": True, **counted}

    sockets = [end("gateway", "a", "b", 30, 20), end("engine", "b", "a", 20, 30), end("reporter", "c", "d", 9, 9)]
    record = {"sockets": sockets, "counts": {"orders_sent": 10}, "duration_s": 1.0}
    assert packets("per_order")(record) == 5.0
    assert packets("mean_bytes")(record) == 10.0
    assert packets("mean_gap_us")(record) == pytest.approx(1e6 / 50)
    assert packets("per_order")({"sockets": []}) is None


def test_each_network_has_its_own_blocks_and_a_single_one_has_no_words() -> None:
    arms = nagle_arms(["tcp"], [1000.0], ["all"], 1.0, {"seed": 1}, ["local", "gige"])
    assert [(arm.block, arm.settings.network) for arm in arms[::2]] == [
        ("tcp, at 1,000 orders/s, on local", "local"),
        ("tcp, at 1,000 orders/s, on gige", "gige"),
    ]
    alone = nagle_arms(["tcp"], [1000.0], ["all"], 1.0, {"seed": 1}, ["gige"])
    assert {(arm.block, arm.settings.network) for arm in alone} == {("tcp, at 1,000 orders/s", "gige")}


@pytest.mark.parametrize(
    ("networks", "sentence"),
    [([], "--network is empty"), (["gige", "gige"], "--network has gige twice"), (["moon"], "no network is called")],
)
def test_networks_that_cannot_be_compared_are_refused(networks: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        nagle_arms(["tcp"], [1000.0], ["all"], 1.0, {"seed": 1}, networks)
