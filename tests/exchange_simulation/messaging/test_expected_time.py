"""How long a plan says that a benchmark takes."""

from __future__ import annotations

import pytest

from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.expected_time import expected_s
from exchange_simulation.papers.catalogue import PAPERS
from exchange_simulation.papers.extent import QUICK, Extent
from tests.exchange_simulation.messaging.test_plan import settings


def expected_s_of(line: str) -> float:
    name, _, words = line.partition(" ")
    benchmark = benchmark_of(name)
    return expected_s(benchmark, settings(benchmark, words))


def test_more_messages_than_by_default_take_longer() -> None:
    usual_s = expected_s_of("de-spsc --transport zeromq --sizes 64 --repeats 1")
    ten_times_s = expected_s_of("de-spsc --transport zeromq --sizes 64 --repeats 1 --count 20M")
    fewer_s = expected_s_of("de-spsc --transport zeromq --sizes 64 --repeats 1 --count 1000")
    assert ten_times_s > usual_s + 1
    assert fewer_s == usual_s


def test_messages_of_several_streams_take_longer_than_those_of_one() -> None:
    one_s, four_s = (expected_s_of(f"streams --transport zeromq --sizes 32 --streams {k} --repeats 1") for k in (1, 4))
    assert four_s > one_s + 0.4


def test_clients_at_a_broker_take_as_long_as_their_transfers() -> None:
    """The report's 12,000,000 transfers take two processors four minutes; the plan of --quick said a second."""
    assert 230 < expected_s_of("perftest --transport amqp --clients 60 --repeats 1") < 260
    assert expected_s_of("perftest --transport zeromq --clients 60 --repeats 1") < 30


def test_the_start_of_each_broker_counts_once() -> None:
    words = "perftest --clients 6 --qt 2 --count 6000"
    once_s = expected_s_of(f"{words} --transport amqp --repeats 1")
    twice_s = expected_s_of(f"{words} --transport amqp --repeats 2")
    elsewhere_s = expected_s_of(f"{words} --transport amqp://guest@example.org:5672/ --repeats 1")
    two_brokers_s = expected_s_of(f"{words} --transport amqp,amqp?schedulers=1 --repeats 1")
    start_s = once_s - elsewhere_s
    assert start_s > 1
    assert twice_s - once_s == pytest.approx(elsewhere_s)
    assert two_brokers_s == pytest.approx(2 * once_s)


ONCE = Extent(repeats=1)
MEASURED_S = {("amqp", QUICK): 355, ("zeromq", QUICK): 173, ("request-reply", QUICK): 358, ("mrg", ONCE): 1_760}
"""What papers took on two quiet processors, 2026-11-27 and 28."""


@pytest.mark.parametrize(("name", "extent"), MEASURED_S, ids=str)
def test_the_plan_of_a_paper_is_within_a_fifth_of_what_it_took(name: str, extent: Extent) -> None:
    planned_s = sum(part.expected_s(extent) for part in PAPERS[name].parts)
    assert planned_s == pytest.approx(MEASURED_S[name, extent], rel=0.2)
