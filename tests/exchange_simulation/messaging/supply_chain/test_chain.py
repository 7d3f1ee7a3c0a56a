"""What is fixed before the start: who offers which family, who begins when, and how many messages that makes."""

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


def named(topology: Topology) -> str:
    return f"{topology.name} of {topology.locations[AgentKind.SM]}"


@pytest.mark.parametrize("topology", WORKLOADS, ids=named)
def test_every_supplier_offers_its_share_of_the_families(topology: Topology) -> None:
    rivals = Chain(topology).suppliers_of
    offers = Counter(supplier for own in rivals for supplier in own)
    assert set(offers) == set(range(topology.locations[AgentKind.SP]))
    assert max(offers.values()) - min(offers.values()) <= 1
    assert sum(offers.values()) == pytest.approx(topology.families * topology.suppliers_of_a_family, abs=1)
    assert all(len(set(own)) == len(own) for own in rivals)


def test_every_family_is_called_and_every_supplier_wins_as_often() -> None:
    chain = Chain(vertical(10))
    calls = range(600)
    assert set(Counter(chain.family(0, call) for call in calls).values()) == {6}
    won = Counter(chain.winner(centre, call) for call in calls for centre in range(2))
    assert all(won[supplier] == pytest.approx(240, rel=0.05) for supplier in range(5)), won
    assert all(chain.winner(1, call) in chain.suppliers_of[chain.family(1, call)] for call in calls)


def test_neighbours_take_turns_evenly() -> None:
    chain = Chain(vertical(10))
    dues = np.sort(
        np.concatenate([chain.dues_ns(Location(AgentKind.SM, place), 5, ChainTimes(0, 10, 1)) for place in range(10)])
    )
    gaps = np.diff(dues)
    gap = int(gaps.max())
    assert gaps.min() == pytest.approx(gap, abs=2)
    assert len(dues) == pytest.approx(chain.topology.initiations_per_s(5) * 10, abs=1)
    assert (dues[0], dues[-1]) == (pytest.approx(gap / 2, abs=2), pytest.approx(10e9, abs=2 * gap))


FEW_OFFERS = Topology("few offers", {**dict.fromkeys(AgentKind, 2), AgentKind.SP: 1}, 20, 0.5, {2: 5.0})
"""A supplier that offers every second family."""


@pytest.mark.parametrize("topology", [*WORKLOADS, FEW_OFFERS], ids=named)
def test_the_deliveries_of_a_whole_run_agree_with_the_plan(topology: Topology) -> None:
    chain = Chain(topology)
    planned = SupplyChainPlan.of(topology).received * 300
    assert chain.deliveries(ChainTimes(0, 300, 1)) == pytest.approx(planned, rel=0.01)
    assert chain.deliveries(ChainTimes(0, 0, 1)) == 0


@pytest.mark.parametrize("topology", WORKLOADS, ids=named)
@pytest.mark.parametrize("warm_up_s", [0.0, 0.7, 2.0, 13.1])
def test_each_interaction_begins_as_often_as_planned(topology: Topology, warm_up_s: float) -> None:
    """Within the measured time."""
    chain, times = Chain(topology), ChainTimes(warm_up_s, 20.0, 1.0)
    for number in topology.interactions:
        initiator = INTERACTIONS[number].initiator
        dues = [chain.dues_ns(Location(initiator, place), number, times) for place in range(chain.count_of(initiator))]
        begun = np.count_nonzero(np.concatenate(dues) >= warm_up_s * 1e9)
        assert abs(begun - topology.initiations_per_s(number) * 20) <= 0.5 + 1e-6, number


def test_sizes_come_in_the_paper_s_proportions() -> None:
    found = Counter(size_number(Location(AgentKind.SM, 3), nth) for nth in range(2000))
    assert [found[size] / 2000 for size in range(3)] == pytest.approx(PROBABILITIES, abs=0.002)


@pytest.mark.parametrize("topology", WORKLOADS, ids=named)
def test_every_location_has_one_agent_and_few_agents_share_a_kind(topology: Topology) -> None:
    agents = agents_of(Chain(topology), 40)
    everybody = [location for agent in agents for location in agent]
    assert sorted(everybody, key=str) == sorted(Chain(topology).locations, key=str)
    assert all(len({location.kind for location in agent}) == 1 for agent in agents)
    assert len(agents) <= 40 or len(agents) == len(everybody)
    assert len(agents) == min(len(everybody), len(agents))
