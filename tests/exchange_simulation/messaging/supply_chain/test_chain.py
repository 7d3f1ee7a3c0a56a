"""The facts that are fixed before the start: suppliers of families, due times, sizes, deliveries, and agents."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from exchange_simulation.messaging.supply_chain.chain import Chain, ChainTimes, Location, size_number
from exchange_simulation.messaging.supply_chain.deployment import agents_of
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, PROBABILITIES, AgentKind
from exchange_simulation.messaging.supply_chain.plan import SupplyChainPlan
from exchange_simulation.messaging.supply_chain.topologies import Topology, horizontal, vertical

WORKLOADS = [vertical(1), vertical(50), horizontal(5), horizontal(12), horizontal(100)]


def topology_id(topology: Topology) -> str:
    return f"{topology.name} of {topology.locations[AgentKind.SM]}"


@pytest.mark.parametrize("topology", WORKLOADS, ids=topology_id)
def test_every_supplier_offers_its_share_of_the_families(topology: Topology) -> None:
    suppliers_of = Chain(topology).suppliers_of

    offers: Counter[int] = Counter()
    for suppliers in suppliers_of:
        assert len(set(suppliers)) == len(suppliers)
        offers.update(suppliers)

    assert set(offers) == set(range(topology.locations[AgentKind.SP]))
    assert max(offers.values()) - min(offers.values()) <= 1
    zeta = topology.locations[AgentKind.SP] * topology.offers_of
    assert sum(offers.values()) == pytest.approx(topology.families * zeta, abs=1)


@pytest.mark.parametrize(
    ("suppliers", "offers_of", "families"), [(3, 0.5, 1), (3, 0.5, 3), (3, 0.5, 5), (1, 0.5, 5), (2, 0.3, 7)]
)
def test_the_plan_has_the_offers_that_suppliers_make(suppliers: int, offers_of: float, families: int) -> None:
    """Regression: the plan had fractions of offers, and a run with the whole ones was off the plan."""
    locations = {AgentKind.SM: 1, AgentKind.DC: 1, AgentKind.SP: suppliers, AgentKind.HQ: 1}
    topology = Topology("freeform", locations, families, offers_of, {2: 1.0})

    offers_by_family = [len(offering) for offering in Chain(topology).suppliers_of]
    sent_by_message = {flow.message.name: flow.sent for flow in SupplyChainPlan.of(topology).flows}

    assert sent_by_message["offer"] == pytest.approx(sum(offers_by_family) / families)
    served_families = sum(offers > 0 for offers in offers_by_family)
    assert sent_by_message["pOrder"] == pytest.approx(served_families / families)


def test_a_centre_calls_all_families_equally_often() -> None:
    chain = Chain(vertical(10))
    calls_by_family = Counter(chain.family(0, call) for call in range(600))
    assert len(calls_by_family) == 100
    assert set(calls_by_family.values()) == {6}


def test_every_supplier_wins_equally_often() -> None:
    chain = Chain(vertical(10))
    wins: Counter[int] = Counter()
    for centre in range(2):
        wins.update(chain.winner(centre, call) for call in range(600))
    for supplier in range(5):
        assert wins[supplier] == pytest.approx(2 * 600 / 5, rel=0.05)


def test_the_winner_offers_the_family() -> None:
    chain = Chain(vertical(10))
    for call in range(600):
        assert chain.winner(1, call) in chain.suppliers_of[chain.family(1, call)]


def test_initiations_of_all_supermarkets_are_evenly_spaced() -> None:
    chain = Chain(vertical(10))
    times = ChainTimes(0, 10, 1)

    dues_of_supermarkets = [chain.dues_ns(Location(AgentKind.SM, place), 5, times) for place in range(10)]
    dues_ns = np.sort(np.concatenate(dues_of_supermarkets))

    gaps_ns = np.diff(dues_ns)
    gap_ns = int(gaps_ns.max())
    assert gaps_ns.min() == pytest.approx(gap_ns, abs=2)
    assert len(dues_ns) == pytest.approx(chain.topology.initiations_per_s(5) * 10, abs=1)
    assert dues_ns[0] == pytest.approx(gap_ns / 2, abs=2)
    assert dues_ns[-1] == pytest.approx(10e9, abs=2 * gap_ns)


FEW_OFFERS = Topology("few offers", {**dict.fromkeys(AgentKind, 2), AgentKind.SP: 1}, 20, 0.5, {2: 5.0})
"""A topology with one supplier, which offers every second family."""


@pytest.mark.parametrize("topology", [*WORKLOADS, FEW_OFFERS], ids=topology_id)
def test_the_deliveries_of_a_run_agree_with_the_plan(topology: Topology) -> None:
    planned = SupplyChainPlan.of(topology).received * 300
    assert Chain(topology).deliveries(ChainTimes(0, 300, 1)) == pytest.approx(planned, rel=0.01)


def test_a_run_of_no_time_has_no_deliveries() -> None:
    assert Chain(vertical(1)).deliveries(ChainTimes(0, 0, 1)) == 0


@pytest.mark.parametrize("topology", WORKLOADS, ids=topology_id)
@pytest.mark.parametrize("warm_up_s", [0.0, 0.7, 2.0, 13.1])
def test_interactions_begin_as_often_as_planned_in_the_measured_time(topology: Topology, warm_up_s: float) -> None:
    chain = Chain(topology)
    times = ChainTimes(warm_up_s, 20.0, 1.0)
    for number in topology.interactions:
        initiator = INTERACTIONS[number].initiator
        places = range(chain.count_of(initiator))
        dues_ns = np.concatenate([chain.dues_ns(Location(initiator, place), number, times) for place in places])
        begun = np.count_nonzero(dues_ns >= warm_up_s * 1e9)
        planned = topology.initiations_per_s(number) * 20
        rounding = 1e-6
        assert abs(begun - planned) <= 0.5 + rounding, number


def test_the_three_sizes_have_the_paper_s_proportions() -> None:
    counts = Counter(size_number(Location(AgentKind.SM, 3), nth) for nth in range(2000))
    shares = [counts[0] / 2000, counts[1] / 2000, counts[2] / 2000]
    assert shares == pytest.approx(PROBABILITIES, abs=0.002)


@pytest.mark.parametrize("most", [4, 5, 40])
@pytest.mark.parametrize("topology", WORKLOADS, ids=topology_id)
def test_every_location_has_one_agent_and_an_agent_one_kind(topology: Topology, most: int) -> None:
    agents = agents_of(Chain(topology), most)

    locations: list[Location] = []
    for agent in agents:
        assert len({location.kind for location in agent}) == 1
        locations += agent

    assert sorted(locations, key=str) == sorted(Chain(topology).locations, key=str)
    assert len(agents) <= most
