"""The status of a run follows from the results of its components: complete, saturated, invalid or partial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exchange.instances import role_of
from exchange.results import EngineResult, GatewayResult, ReporterResult, StreamCounts
from exchange.settings import RunSettings
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.outcome import RunOutcome, outcome_of, recovery_facts
from exchange_simulation.launching.record.status import is_gateway_lag_only, judge

RATE = 8000.0
ORDERS = StreamCounts(messages=80, checksum="00000000000000aa")
ANSWERS = StreamCounts(messages=190, checksum="b" * 16)
GATEWAY_END = {"sent": 80, "sent_checksum": 0xAA, "received": 0, "received_checksum": 0}
ENGINE_END = {"sent": 190, "sent_checksum": int("b" * 16, 16), "received": 80, "received_checksum": 0xAA}
LATE = "the gateway's p99 lag is 10.0 ms, though the rate was held and answers kept up: a delay on the gateway's side"


def outcome(orders: int = 80, packing: int = 1, late_s: float = 0.0, **changes: Any) -> RunOutcome:
    """The outcome of a run whose last order alone was late; `changes` are fields of results, by role."""
    sent = replace(ORDERS, messages=orders)
    settings = RunSettings(orders_per_s=RATE, orders=orders, packing=packing).as_dict()
    gateway = GatewayResult(
        settings=settings,
        orders=sent,
        answers=ANSWERS,
        orders_answered=orders,
        trades=0,
        confirmations=0,
        quotes=0,
        rejections=0,
        junk_frames=0,
        samples=0,
        duration_s=(orders - 1) / RATE + late_s + 0.001,
        handing_over_s=(orders - min(packing, orders)) / RATE + late_s,
        schedule_s=(orders - min(packing, orders)) / RATE,
        backlog_growth=0,
        usage={},
        sockets=[],
        engine_said={**ENGINE_END, "received": orders},
        statistics_sent=5,
    )
    engine = EngineResult(
        orders=sent,
        answers=ANSWERS,
        junk_frames=0,
        handshakes_refused=0,
        usage={},
        sockets=[],
        gateway_said={**GATEWAY_END, "sent": orders},
        statistics_sent=4,
    )
    reporter = ReporterResult(
        received=9, announced=9, checksums_agree=True, junk_frames=0, handshakes_refused=0, samples=0
    )
    return outcome_of(
        Lineup(),
        {
            "gateway": replace(gateway, **changes.get("gateway", {})),
            "engine": replace(engine, **changes.get("engine", {})),
            "reporter": replace(reporter, **changes.get("reporter", {})),
        },
    )


def test_a_run_whose_ends_agree_is_complete() -> None:
    assert judge(outcome(), RATE, {1: 50.0}) == ("complete", [])


@pytest.mark.parametrize("asked", [True, False])
def test_a_socket_with_another_nodelay_than_requested_makes_a_run_invalid(asked: bool) -> None:
    socket = {"local": "127.0.0.1:7000", "tcp_nodelay": asked, "tcp_nodelay_asked": asked}
    assert judge(outcome(engine={"sockets": [socket]}), RATE, {1: 50.0}) == ("complete", [])
    status, [reason] = judge(outcome(engine={"sockets": [{**socket, "tcp_nodelay": not asked}]}), RATE, {1: 50.0})
    expected = "to be on, and is off" if asked else "to be off, and is on"
    assert status == "invalid"
    assert reason == f"TCP_NODELAY of the engine's 127.0.0.1:7000 was {expected}"


@pytest.mark.parametrize("orders", [1, 2, 3, 80, 8000])
@pytest.mark.parametrize("packing", [1, 7, 100])
def test_a_gateway_without_lag_is_never_saturated(orders: int, packing: int) -> None:
    assert judge(outcome(orders, packing), RATE, {1: 50.0}) == ("complete", [])


def test_one_late_wake_up_does_not_saturate_a_short_run() -> None:
    assert judge(outcome(orders=80, late_s=0.0005), RATE, {1: 500.0}) == ("complete", [])


@pytest.mark.parametrize("packing", [1, 50])
def test_a_gateway_that_falls_behind_is_saturated_with_the_achieved_rate(packing: int) -> None:
    status, [reason] = judge(outcome(orders=80_050, packing=packing, late_s=0.2), RATE, {1: 50.0})
    assert status == "saturated"
    assert reason == "7,843 of 8,000 offered orders/s were achieved"


def test_an_hour_late_with_one_order_is_no_saturation() -> None:
    alone = outcome(orders=1, gateway={"duration_s": 3600.0, "backlog_growth": 1000})
    assert judge(alone, RATE, {1: 1e9}) == ("complete", [])


def test_a_run_whose_orders_are_all_due_at_once_is_judged_by_its_lag() -> None:
    at_once = outcome(orders=50_000, gateway={"handing_over_s": 0.0})
    assert judge(at_once, RATE, {1: 50.0}) == ("complete", [])
    assert judge(at_once, RATE, {1: 10_001.0})[0] == "saturated"


@pytest.mark.parametrize(("taken_s", "status"), [(5.0, "complete"), (5.05, "complete"), (5.06, "saturated")])
def test_handing_over_longer_than_the_schedule_is_saturated(taken_s: float, status: str) -> None:
    """A tape, or chance, may give 80,000 orders half the time that the rate would."""
    gateway = {"schedule_s": 5.0, "handing_over_s": taken_s}
    assert judge(outcome(orders=80_000, gateway=gateway), RATE, {1: 50.0})[0] == status


def test_orders_due_at_once_may_take_a_period_each() -> None:
    """The last of 80 bursts of 1000 is due a burst's length before its last order would be due alone."""
    bursts = {"schedule_s": 79_000 / RATE, "due_at_once": 1_000}
    for taken_s, status in ((79_999 / RATE, "complete"), (1.02 * 79_999 / RATE, "saturated")):
        assert (
            judge(outcome(orders=80_000, gateway={**bursts, "handing_over_s": taken_s}), RATE, {1: 50.0})[0] == status
        )
    [reason] = judge(outcome(orders=80_000, gateway={**bursts, "handing_over_s": 20.0}), RATE, {1: 50.0})[1]
    assert reason == "4,000 of 8,000 offered orders/s were achieved"


def test_one_burst_alone_that_takes_two_milliseconds_is_no_saturation() -> None:
    alone = outcome(orders=1_000, gateway={"schedule_s": 0.0, "due_at_once": 1_000, "handing_over_s": 0.002})
    assert judge(alone, RATE, {1: 2_000.0}) == ("complete", [])


def test_a_backlog_that_grew_by_one_burst_is_no_saturation() -> None:
    for growth, status in ((5_000, "complete"), (5_001, "saturated")):
        late = {"backlog_growth": growth, "due_at_once": 5_000}
        assert judge(outcome(orders=80_000, gateway=late), RATE, {1: 50.0})[0] == status


def test_rate_max_is_never_saturated() -> None:
    assert judge(outcome(late_s=100.0), None, {}) == ("complete", [])


def test_a_backlog_that_grew_is_saturation() -> None:
    assert judge(outcome(orders=80_000, gateway={"backlog_growth": 201}), RATE, {1: 50.0})[0] == "saturated"
    assert judge(outcome(orders=80_000, gateway={"backlog_growth": 200}), RATE, {1: 50.0})[0] == "complete"


def test_the_gateway_s_lag_is_no_run_s_first_reason_if_there_is_another() -> None:
    """Alone it does not mean that the rate was missed, so it is no reason why a capacity's probe failed."""
    status, reasons = judge(outcome(orders=80_000, gateway={"backlog_growth": 201}), RATE, {1: 14_600.0})
    assert status == "saturated"
    assert reasons == [
        "unanswered orders were still growing at the end, by 201 in the last quarter",
        "the gateway's p99 lag is 14.6 ms",
    ]


def test_a_lag_behind_a_broker_in_alarm_is_the_brokers() -> None:
    paused = outcome(gateway={"link": {"blocked_s": 1.5}})
    status, [why, lag] = judge(paused, RATE, {1: 1_400_000.0})
    assert status == "saturated"
    assert why == "the broker was in alarm, and took nothing for 1.50 s"
    assert lag == "the gateway's p99 lag is 1,400.0 ms"
    assert not is_gateway_lag_only([why, lag])


def test_a_lag_behind_a_broker_that_stood_still_is_not_the_gateways_own() -> None:
    paused = replace(outcome(), broker={"slowest_look_s": 4.21})
    status, [why, lag] = judge(paused, RATE, {1: 1_400_000.0})
    assert status == "saturated"
    assert why.startswith("the broker answered a look at its queues after 4.2 s")
    assert lag == "the gateway's p99 lag is 1,400.0 ms"
    assert not is_gateway_lag_only([why, lag])
    assert judge(paused, RATE, {1: 50.0}) == ("complete", [])


def test_a_lag_around_a_break_of_the_session_is_not_the_gateways_own() -> None:
    resumed = outcome(gateway={"recovery": {"sessions": 2, "orders_resent": 31, "without_service_s": 2.72}})
    assert judge(resumed, RATE, {1: 50.0}) == ("complete", [])
    status, [why, lag] = judge(resumed, RATE, {1: 2_600_000.0})
    assert status == "saturated"
    assert why == "the session was broken, and nothing was answered for 2.72 s"
    assert lag == "the gateway's p99 lag is 2,600.0 ms"
    assert not is_gateway_lag_only([why, lag])


@pytest.mark.parametrize(
    ("role", "change", "reason"),
    [
        ("engine", {"gateway_said": None}, "the gateway's end message never came"),
        ("gateway", {"engine_said": None}, "the engine's end message never came"),
        ("engine", {"gateway_said": {**GATEWAY_END, "sent": 81}}, "the gateway's end message says"),
        ("engine", {"gateway_said": {**GATEWAY_END, "sent_checksum": 1}}, "the gateway's end message says"),
        ("gateway", {"engine_said": {**ENGINE_END, "sent": 191}}, "the engine's end message says"),
        ("gateway", {"engine_said": {**ENGINE_END, "sent_checksum": 1}}, "the engine's end message says"),
        ("gateway", {"engine_said": {**ENGINE_END, "received": 79}}, "the engine's end message says"),
        ("gateway", {"engine_said": {**ENGINE_END, "received_checksum": 1}}, "the engine's end message says"),
        ("gateway", {"statistics_sent": 6}, "statistics differ: 10 messages sent, 9 announced"),
        ("engine", {"statistics_sent": 3}, "statistics differ: 8 messages sent, 9 announced"),
        ("reporter", {"received": 8}, "statistics differ: 9 messages sent, 8 received"),
        (
            "reporter",
            {"checksums_agree": False},
            "statistics differ: 9 messages sent and received, but the checksum of those sent is another",
        ),
        ("engine", {"orders": StreamCounts(messages=80, checksum="0" * 16)}, "orders differ"),
    ],
)
def test_ends_that_contradict_each_other_make_a_run_invalid(role: str, change: dict[str, Any], reason: str) -> None:
    status, reasons = judge(outcome(**{role: change}), RATE, {1: 50.0})
    assert status == "invalid"
    assert reasons[0].startswith(reason)


def test_partial_comes_before_invalid_and_invalid_before_saturated() -> None:
    wrong = {"engine_said": None, "backlog_growth": 10**6}
    assert judge(outcome(gateway=wrong), RATE, {1: 50.0})[0] == "invalid"
    assert judge(outcome(gateway={**wrong, "stopped": "interrupted"}), RATE, {1: 50.0}) == (
        "partial",
        ["gateway: interrupted"],
    )


def two_pairs(reporters: int = 1, **changes: Any) -> RunOutcome:
    """The outcome of a run in which all is well, but for `changes` by component, as gateway_2."""
    well = outcome().results
    lineup = Lineup((1, 2), tuple(range(1, reporters + 1)))
    pairs_each = 2 // reporters
    heard = {"received": 9 * pairs_each, "announced": 9 * pairs_each}
    results: dict[str, Any] = {
        name: replace(well[role_of(name)], **changes.get(name.replace(".", "_"), {})) for name in lineup.names
    }
    return outcome_of(lineup, {n: replace(r, **heard) if role_of(n) == "reporter" else r for n, r in results.items()})


@pytest.mark.parametrize("reporters", [1, 2])
def test_a_run_of_two_complete_pairs_is_complete(reporters: int) -> None:
    assert judge(two_pairs(reporters), RATE, {1: 50.0, 2: 50.0}) == ("complete", [])


def test_a_run_has_the_status_of_its_worst_pair_and_names_the_pair() -> None:
    lags = {1: 50.0, 2: 10_001.0}
    fell_behind = two_pairs()
    assert judge(fell_behind, RATE, lags) == ("saturated", [f"pair 2: {LATE}"])
    assert is_gateway_lag_only([f"pair 2: {LATE}", LATE])
    assert not is_gateway_lag_only([LATE, "7,000 of 8,000 offered orders/s were achieved"])
    assert [judge(fell_behind.of_pair(pair), RATE, lags)[0] for pair in (1, 2)] == ["complete", "saturated"]
    wrong = two_pairs(gateway_2={"orders_answered": 79})
    assert judge(wrong, RATE, lags) == ("invalid", ["pair 2: 1 orders were never answered"])
    assert [judge(wrong.of_pair(pair), RATE, lags)[0] for pair in (1, 2)] == ["complete", "invalid"]
    stopped = two_pairs(engine_2={"stopped": "interrupted"}, gateway={"orders_answered": 79})
    unknown = "orders sent 160, answered 159, unknown 1"
    assert judge(stopped, RATE, lags) == ("partial", [unknown, "engine.2: interrupted"])
    assert [judge(stopped.of_pair(pair), RATE, lags)[0] for pair in (1, 2)] == ["invalid", "partial"]


def test_a_pause_of_the_broker_is_told_once_for_all_pairs() -> None:
    paused = replace(two_pairs(), broker={"slowest_look_s": 4.21})
    _, [pause, *lags] = judge(paused, RATE, {1: 1_400_000.0, 2: 1_400_000.0})
    assert pause.startswith("the broker answered a look at its queues after 4.2 s")
    assert lags == ["pair 1: the gateway's p99 lag is 1,400.0 ms", "pair 2: the gateway's p99 lag is 1,400.0 ms"]


def test_a_loss_at_one_of_several_reporters_names_the_reporter() -> None:
    lost = two_pairs(2, gateway_2={"statistics_sent": 7})
    assert judge(lost, RATE, {}) == ("invalid", ["reporter.2: statistics differ: 11 messages sent, 9 announced"])


def test_reasons_are_sorted_by_pair() -> None:
    well = two_pairs()
    backwards = outcome_of(well.lineup, dict(reversed(well.results.items())))
    _, reasons = judge(backwards, RATE, {1: 10_001.0, 2: 10_001.0})
    assert [reason[:6] for reason in reasons] == ["pair 1", "pair 2"]


def test_components_outside_the_lineup_are_in_no_figure() -> None:
    strange = outcome_of(Lineup((1,), (1,)), two_pairs().results)
    assert list(strange.gateways) == [1]
    assert list(strange.engines) == [1]


def test_gateways_with_differing_loads_make_a_run_invalid() -> None:
    """Differing hosts do not."""
    usual = outcome().gateways[1].settings
    elsewhere = {**usual, "transport": "tcp://hostc:7000", "cpus": {"gateway": 3}, "timeout_s": 60.0, "record": True}
    assert judge(two_pairs(gateway_2={"settings": elsewhere}), RATE, {}) == ("complete", [])
    status, reasons = judge(two_pairs(gateway_2={"settings": {**elsewhere, "orders_per_s": 500.0}}), RATE, {})
    expected = "gateway.2 was started with orders_per_s 500.0, gateway with 8000.0: give all the same"
    assert status == "invalid"
    assert reasons == [expected]


@pytest.mark.parametrize(
    ("timed", "reason"),
    [
        (80, None),
        (68, "12 orders without a completion time: it died with the gateway and its reporter"),
        (85, "5 completion times too many: the gateway was killed while it reported a second"),
    ],
)
def test_a_recovered_run_says_how_many_orders_have_no_completion_time(timed: int, reason: str | None) -> None:
    recovered = replace(outcome(), timed={1: timed}, restarts=1)
    assert judge(recovered, RATE, {1: 50.0}) == (("invalid", [reason]) if reason else ("complete", []))
    assert recovery_facts(recovered)["orders_untimed"] == 80 - timed
