"""The plan against the paper: its equations, and the numbers that its tables 4 and 5 print."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from exchange_simulation.messaging.supply_chain.in_words import PAPERS_MIX
from exchange_simulation.messaging.supply_chain.messages import MESSAGES, AgentKind, Group, mean_kb, sizes_kb
from exchange_simulation.messaging.supply_chain.plan import SupplyChainPlan
from exchange_simulation.messaging.supply_chain.topologies import (
    HORIZONTAL,
    SHARES,
    VERTICAL,
    Topology,
    horizontal,
    vertical,
)

BASES = (10, 50, 100)
ODD = Topology(
    "freeform",
    {AgentKind.SM: 7, AgentKind.DC: 3, AgentKind.SP: 4, AgentKind.HQ: 2},
    12,
    0.75,
    {1: 2.0, 2: 3.0, 3: 5.0, 4: 7.0, 5: 11.0, 6: 13.0, 7: 17.0},
)
"""Rates are primes, so that no two sums are equal by chance."""
TABLE_4 = {
    "orderConf": (2.02, 7.39, 41.29, 2.63), "statInfoOrderDC": (0.22, 1.67, 10.83, 0.39),
    "shipInfo": (1.28, 8.76, 55.95, 2.13), "shipDep": (1.12, 8.59, 55.79, 1.96), "order": (1.74, 7.10, 41.01, 2.34),
    "shipConf": (0.81, 2.73, 14.83, 1.03), "callForOffers": (1.35, 7.06, 36.52, 1.93),
    "offer": (1.69, 9.65, 50.71, 2.50), "pOrder": (1.86, 9.85, 51.07, 2.67), "pShipConf": (1.01, 3.65, 17.29, 1.28),
    "statInfoShipDC": (1.02, 3.68, 17.38, 1.29), "pOrderConf": (2.07, 9.79, 49.56, 2.86),
    "invoice": (1.70, 7.92, 39.95, 2.33), "pShipInfo": (0.98, 3.62, 17.26, 1.24),
    "productAnnouncement": (1.21, 0.28, 10.51, 1.26), "creditCardHL": (1.01, 8.49, 50.00, 1.80),
}  # fmt: skip
"""Printed with two decimals from coefficients that have four, so the largest are a little off."""


def topology_of(name: str, base: int) -> Topology:
    return vertical(base) if name == VERTICAL else horizontal(base)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", [VERTICAL, HORIZONTAL])
def test_the_mix_of_table_5_comes_out_at_every_base(name: str, base: int) -> None:
    plan = SupplyChainPlan.of(topology_of(name, base))
    for group in Group:
        messages, kilobytes = PAPERS_MIX[name][group.value]
        received = 100 * plan.of_group(group).received / plan.received
        size = 100 * plan.of_group(group).received_kb / plan.received_kb
        assert received == pytest.approx(messages, abs=0.06)
        assert size == pytest.approx(kilobytes, abs=0.1)


@pytest.mark.parametrize("name", [VERTICAL, HORIZONTAL])
def test_each_interaction_has_its_share(name: str) -> None:
    plan, share = SupplyChainPlan.of(topology_of(name, 100)), SHARES[name]
    suppliers = {VERTICAL: 2.5, HORIZONTAL: 2}[name]
    expected = {1: 6 * share[1], 2: (2 * suppliers + 6) * share[2], **{n: share[n] for n in (3, 4, 5, 6, 7)}}
    for number, percent in expected.items():
        own = plan.of_interaction(number).received
        assert 100 * own / plan.received == pytest.approx(percent, abs=0.05)


@pytest.mark.parametrize(("name", "per_base"), [(VERTICAL, 10), (HORIZONTAL, 10)])
def test_traffic_grows_with_base(name: str, per_base: int) -> None:
    once, many = (SupplyChainPlan.of(topology_of(name, base)) for base in (per_base, 10 * per_base))
    assert many.received == pytest.approx(10 * once.received)
    assert once.received == pytest.approx(20 * per_base, rel=0.001)


def test_horizontal_leaves_the_traffic_of_a_supermarket_alone() -> None:
    small, large = SupplyChainPlan.of(horizontal(10)), SupplyChainPlan.of(horizontal(200))
    for kind in (AgentKind.SM, AgentKind.DC, AgentKind.SP):
        for group in Group:
            one, other = small.of_group(group), large.of_group(group)
            assert one.received_by(kind) == pytest.approx(other.received_by(kind))
            assert one.sent_by(kind) == pytest.approx(other.sent_by(kind))


def per_interaction(topology: Topology) -> Mapping[tuple[int, str, str], float]:
    """The equations of section 3.1a as printed; but 5 in group c, as tables 1 and 5 have it."""
    rate = topology.rates
    supermarkets, centres = topology.locations[AgentKind.SM], topology.locations[AgentKind.DC]
    zeta = topology.suppliers_of_a_family
    return {
        (1, "c", "se"): rate[1] * supermarkets,
        (1, "c", "re"): rate[1] * supermarkets,
        (1, "d", "se"): 5 * rate[1] * supermarkets,
        (1, "d", "re"): 5 * rate[1] * supermarkets,
        (2, "b", "se"): rate[2] * centres,
        (2, "b", "re"): zeta * rate[2] * centres,
        (2, "c", "se"): rate[2] * centres,
        (2, "c", "re"): rate[2] * centres,
        (2, "d", "se"): (zeta + 5) * rate[2] * centres,
        (2, "d", "re"): (zeta + 5) * rate[2] * centres,
        (3, "b", "se"): rate[3],
        (3, "b", "re"): rate[3] * supermarkets,
        (4, "d", "se"): rate[4] * supermarkets,
        (4, "d", "re"): rate[4] * supermarkets,
        (5, "c", "se"): rate[5] * supermarkets,
        (5, "c", "re"): rate[5] * supermarkets,
        (6, "a", "se"): rate[6],
        (6, "a", "re"): rate[6] * supermarkets,
        (7, "a", "se"): rate[7],
        (7, "a", "re"): rate[7] * supermarkets,
    }


def test_messages_by_interaction_and_group_follow_the_equations() -> None:
    plan, expected = SupplyChainPlan.of(ODD), per_interaction(ODD)
    for number in range(1, 8):
        for group in Group:
            own = [flow for flow in plan.flows if (flow.message.interaction, flow.message.group) == (number, group)]
            assert sum(flow.sent for flow in own) == pytest.approx(expected.get((number, group.value, "se"), 0))
            assert sum(flow.received for flow in own) == pytest.approx(expected.get((number, group.value, "re"), 0))


def test_messages_by_location_follow_the_equations() -> None:
    plan, rate = SupplyChainPlan.of(ODD), ODD.rates
    supermarkets, centres, suppliers = (ODD.locations[kind] for kind in (AgentKind.SM, AgentKind.DC, AgentKind.SP))
    calls, share, delta = rate[2] * centres, ODD.offers_of, supermarkets / centres
    sent = {
        (AgentKind.SM, "c"): rate[5], (AgentKind.SM, "d"): 2 * rate[1] + rate[4],
        (AgentKind.SP, "d"): share * calls + 3 * calls / suppliers,
        (AgentKind.DC, "b"): rate[2], (AgentKind.DC, "c"): delta * rate[1] + rate[2],
        (AgentKind.DC, "d"): 3 * rate[1] * delta + 2 * rate[2],
        (AgentKind.HQ, "a"): rate[6] + rate[7], (AgentKind.HQ, "b"): rate[3],
    }  # fmt: skip
    received = {
        (AgentKind.SM, "a"): rate[6] + rate[7], (AgentKind.SM, "b"): rate[3],
        (AgentKind.SM, "d"): 2 * rate[1] + rate[4],
        (AgentKind.SP, "b"): share * calls, (AgentKind.SP, "d"): 2 * calls / suppliers,
        (AgentKind.DC, "d"): 3 * rate[1] * delta + rate[2] * (ODD.suppliers_of_a_family + 2),
        (AgentKind.HQ, "c"): rate[1] * supermarkets + calls + rate[5] * supermarkets, (AgentKind.HQ, "d"): calls,
    }  # fmt: skip
    for kind in AgentKind:
        for group in Group:
            part = plan.of_group(group)
            assert part.sent_by(kind) == pytest.approx(sent.get((kind, group.value), 0)), (kind, group)
            assert part.received_by(kind) == pytest.approx(received.get((kind, group.value), 0)), (kind, group)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_sizes_are_those_of_table_4(message: object) -> None:
    by_name = {each.name: each for each in MESSAGES}
    each = by_name[message.name]  # type: ignore[attr-defined]
    if each.name in TABLE_4:
        *sizes, mean = TABLE_4[each.name]
        assert sizes_kb(each) == pytest.approx(tuple(sizes), rel=0.005, abs=0.006)
        assert mean_kb(each) == pytest.approx(mean, abs=0.011)
    elif each.name == "statInfoSM":
        small, _, large = sizes_kb(each)
        assert (small, large, mean_kb(each)) == pytest.approx((4.7, 24.78, 5.27), abs=0.006)
    else:
        assert (each.name == "priceUpdate") == (len(set(sizes_kb(each))) == 1)


def test_interaction_4_and_the_price_update_are_close_to_table_4() -> None:
    """Within a hundredth; the price update is the one of fixed size."""
    by_name = {message.name: message for message in MESSAGES}
    assert sizes_kb(by_name["priceUpdate"]) == pytest.approx((0.24, 0.24, 0.24), abs=0.01)
    assert sizes_kb(by_name["inventoryInfo"]) == pytest.approx((1.48, 10.22, 49.03), rel=0.005)
    assert mean_kb(by_name["inventoryInfo"]) == pytest.approx(2.31, abs=0.01)
