"""The plan against the paper's equations, and against the numbers of its tables 4 and 5."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from exchange_simulation.messaging.supply_chain.messages import MESSAGES, AgentKind, Group, mean_kb, sizes_kb
from exchange_simulation.messaging.supply_chain.paper_figures import PAPERS_MIX
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
PRIME_RATES = Topology(
    "freeform",
    {AgentKind.SM: 7, AgentKind.DC: 3, AgentKind.SP: 4, AgentKind.HQ: 2},
    12,
    0.75,
    {1: 2.0, 2: 3.0, 3: 5.0, 4: 7.0, 5: 11.0, 6: 13.0, 7: 17.0},
)
"""A topology whose rates are primes, so that no two sums are equal by chance."""
TABLE_4 = {
    "orderConf": (2.02, 7.39, 41.29, 2.63), "statInfoOrderDC": (0.22, 1.67, 10.83, 0.39),
    "shipInfo": (1.28, 8.76, 55.95, 2.13), "shipDep": (1.12, 8.59, 55.79, 1.96), "order": (1.74, 7.10, 41.01, 2.34),
    "shipConf": (0.81, 2.73, 14.83, 1.03), "callForOffers": (1.35, 7.06, 36.52, 1.93),
    "offer": (1.69, 9.65, 50.71, 2.50), "pOrder": (1.86, 9.85, 51.07, 2.67), "pShipConf": (1.01, 3.65, 17.29, 1.28),
    "statInfoShipDC": (1.02, 3.68, 17.38, 1.29), "pOrderConf": (2.07, 9.79, 49.56, 2.86),
    "invoice": (1.70, 7.92, 39.95, 2.33), "pShipInfo": (0.98, 3.62, 17.26, 1.24),
    "productAnnouncement": (1.21, 0.28, 10.51, 1.26), "creditCardHL": (1.01, 8.49, 50.00, 1.80),
}  # fmt: skip
"""The three sizes and the mean of messages. The paper rounds to two decimals, so the largest sizes are a little off."""


def topology_of(name: str, base: int) -> Topology:
    return vertical(base) if name == VERTICAL else horizontal(base)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", [VERTICAL, HORIZONTAL])
def test_the_plan_has_the_mix_of_table_5_at_every_base(name: str, base: int) -> None:
    plan = SupplyChainPlan.of(topology_of(name, base))
    for group in Group:
        share = PAPERS_MIX[name][group.value]
        messages_percent = 100 * plan.of_group(group).received / plan.received
        kilobytes_percent = 100 * plan.of_group(group).received_kb / plan.received_kb
        assert f"{messages_percent:.2f}" == f"{share.messages:.2f}"
        assert kilobytes_percent == pytest.approx(share.kilobytes, abs=0.1)


@pytest.mark.parametrize(("name", "suppliers_of_a_family"), [(VERTICAL, 2.5), (HORIZONTAL, 2)])
def test_each_interaction_has_its_share(name: str, suppliers_of_a_family: float) -> None:
    plan = SupplyChainPlan.of(topology_of(name, 100))
    expected = dict(SHARES[name])  # of 100 delivered messages: initiations of 1 and 2, deliveries of the topics 3 to 7
    expected[1] *= 6  # messages of an initiation
    expected[2] *= 2 * suppliers_of_a_family + 6  # a call to each supplier, the offer of each, and six more
    for number, percent in expected.items():
        received = plan.of_interaction(number).received
        assert 100 * received / plan.received == pytest.approx(percent, abs=0.05)


@pytest.mark.parametrize("name", [VERTICAL, HORIZONTAL])
def test_20_messages_are_delivered_for_each_unit_of_base(name: str) -> None:
    assert SupplyChainPlan.of(topology_of(name, 10)).received == pytest.approx(200, rel=0.001)
    assert SupplyChainPlan.of(topology_of(name, 100)).received == pytest.approx(2000, rel=0.001)


def test_horizontal_growth_does_not_change_the_traffic_of_a_location() -> None:
    small = SupplyChainPlan.of(horizontal(10))
    large = SupplyChainPlan.of(horizontal(200))
    for kind in (AgentKind.SM, AgentKind.DC, AgentKind.SP):
        for group in Group:
            small_part = small.of_group(group)
            large_part = large.of_group(group)
            assert small_part.received_by(kind) == pytest.approx(large_part.received_by(kind))
            assert small_part.sent_by(kind) == pytest.approx(large_part.sent_by(kind))


def per_interaction(topology: Topology) -> Mapping[tuple[int, str, str], float]:
    """Messages sent (se) and received (re) by interaction and group: the equations of section 3.1a.

    Interaction 5 is in group c, as in tables 1 and 5, and not as in the printed equation.
    """
    rate = topology.rates
    supermarkets = topology.locations[AgentKind.SM]
    centres = topology.locations[AgentKind.DC]
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
    plan = SupplyChainPlan.of(PRIME_RATES)
    expected = per_interaction(PRIME_RATES)
    for number in range(1, 8):
        for group in Group:
            part = plan.of_interaction(number).of_group(group)
            assert part.sent == pytest.approx(expected.get((number, group.value, "se"), 0))
            assert part.received == pytest.approx(expected.get((number, group.value, "re"), 0))


def test_messages_by_location_follow_the_equations() -> None:
    plan = SupplyChainPlan.of(PRIME_RATES)
    rate = PRIME_RATES.rates
    supermarkets = PRIME_RATES.locations[AgentKind.SM]
    centres = PRIME_RATES.locations[AgentKind.DC]
    suppliers = PRIME_RATES.locations[AgentKind.SP]
    calls = rate[2] * centres
    share_of_families = PRIME_RATES.offers_of  # that a supplier offers, so it gets this share of the calls
    delta = supermarkets / centres
    sent = {
        (AgentKind.SM, "c"): rate[5], (AgentKind.SM, "d"): 2 * rate[1] + rate[4],
        (AgentKind.SP, "d"): share_of_families * calls + 3 * calls / suppliers,
        (AgentKind.DC, "b"): rate[2], (AgentKind.DC, "c"): delta * rate[1] + rate[2],
        (AgentKind.DC, "d"): 3 * rate[1] * delta + 2 * rate[2],
        (AgentKind.HQ, "a"): rate[6] + rate[7], (AgentKind.HQ, "b"): rate[3],
    }  # fmt: skip
    received = {
        (AgentKind.SM, "a"): rate[6] + rate[7], (AgentKind.SM, "b"): rate[3],
        (AgentKind.SM, "d"): 2 * rate[1] + rate[4],
        (AgentKind.SP, "b"): share_of_families * calls, (AgentKind.SP, "d"): 2 * calls / suppliers,
        (AgentKind.DC, "d"): 3 * rate[1] * delta + rate[2] * (PRIME_RATES.suppliers_of_a_family + 2),
        (AgentKind.HQ, "c"): rate[1] * supermarkets + calls + rate[5] * supermarkets, (AgentKind.HQ, "d"): calls,
    }  # fmt: skip
    for kind in AgentKind:
        for group in Group:
            part = plan.of_group(group)
            assert part.sent_by(kind) == pytest.approx(sent.get((kind, group.value), 0)), (kind, group)
            assert part.received_by(kind) == pytest.approx(received.get((kind, group.value), 0)), (kind, group)


MESSAGE_BY_NAME = {message.name: message for message in MESSAGES}


@pytest.mark.parametrize("name", TABLE_4)
def test_sizes_are_those_of_table_4(name: str) -> None:
    message = MESSAGE_BY_NAME[name]
    *sizes, mean = TABLE_4[name]
    assert sizes_kb(message) == pytest.approx(tuple(sizes), rel=0.005, abs=0.006)
    assert mean_kb(message) == pytest.approx(mean, abs=0.011)


def test_sales_statistics_have_the_sizes_of_table_4() -> None:
    """The medium size of the table does not follow from the coefficients."""
    statistics = MESSAGE_BY_NAME["statInfoSM"]
    small, _, large = sizes_kb(statistics)
    assert small == pytest.approx(4.7, abs=0.006)
    assert large == pytest.approx(24.78, abs=0.006)
    assert mean_kb(statistics) == pytest.approx(5.27, abs=0.006)


def test_a_price_update_has_the_fixed_size_of_table_4() -> None:
    assert sizes_kb(MESSAGE_BY_NAME["priceUpdate"]) == pytest.approx((0.24, 0.24, 0.24), abs=0.01)


def test_inventory_messages_are_close_to_table_4() -> None:
    inventory = MESSAGE_BY_NAME["inventoryInfo"]
    assert sizes_kb(inventory) == pytest.approx((1.48, 10.22, 49.03), rel=0.005)
    assert mean_kb(inventory) == pytest.approx(2.31, abs=0.01)


def test_every_message_has_a_test_of_its_sizes() -> None:
    assert MESSAGE_BY_NAME.keys() == TABLE_4.keys() | {"statInfoSM", "priceUpdate", "inventoryInfo"}


class IndependentPlan:
    """The paper's equations of section 3.1 once more, from nothing but BASE and the shares of tables 4 and 5."""

    def __init__(self, name: str, base: int) -> None:
        if name == VERTICAL:
            supermarkets, centres, suppliers, offers_of, growth = 10, 2, 5, 0.5, base
            shares = {1: 4.50, 2: 1.22, 3: 2.94, 4: 9.09, 5: 33.37, 6: 8.29, 7: 5.90}
            rate = {number: 20 * growth * share / 100 / supermarkets for number, share in shares.items()}
            rate[2] = 20 * growth * shares[2] / 100 / centres
        else:
            supermarkets, centres, suppliers, offers_of = base, -(-base // 5), -(-2 * base // 5), 5 / base
            shares = {1: 2.89, 2: 0.74, 3: 10.97, 4: 5.92, 5: 20.92, 6: 20.83, 7: 16.63}
            rate = {number: 20 * share / 100 for number, share in shares.items()}
            rate[2] = 5 * 20 * shares[2] / 100
        offers = suppliers * offers_of
        orders = rate[1] * supermarkets
        calls = rate[2] * centres
        self.sent = {
            Group.A: rate[6] + rate[7],
            Group.B: calls + rate[3],
            Group.C: orders + calls + rate[5] * supermarkets,
            Group.D: 5 * orders + (offers + 5) * calls + rate[4] * supermarkets,
        }
        self.received = {
            **self.sent,
            Group.A: (rate[6] + rate[7]) * supermarkets,
            Group.B: offers * calls + rate[3] * supermarkets,
        }


@pytest.mark.parametrize(("name", "least_base"), [(VERTICAL, 1), (HORIZONTAL, 5)])
def test_the_plan_equals_an_independent_program_of_the_equations(name: str, least_base: int) -> None:
    for base in range(least_base, 51):
        plan = SupplyChainPlan.of(topology_of(name, base))
        independent = IndependentPlan(name, base)
        for group in Group:
            part = plan.of_group(group)
            assert part.sent == pytest.approx(independent.sent[group], rel=1e-9), (base, group)
            assert part.received == pytest.approx(independent.received[group], rel=1e-9), (base, group)
