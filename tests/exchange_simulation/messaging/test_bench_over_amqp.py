"""Each kind of benchmark over a real RabbitMQ: few messages, and right answers.

latency has the roles of de-pp, density those of throughput, and streams those of de-mpmc.
"""

from __future__ import annotations

import re

import pytest

from tests.exchange_simulation.messaging.bench_commands import Outcome, benches
from transports.rabbitmq import Node

SHORT = "--repeats 1 --count"
FLOOD = "--repeats 1 --quick"
"""As many messages as a measurement needs to be timed."""
COMMANDS = {
    "de-spsc": f"de-spsc --sizes 1,4KiB {SHORT} 2000",
    "de-pp": f"de-pp --sizes 1,1MiB {SHORT} 20",
    "de-mpmc": f"de-mpmc --sizes 64 --pairs 3 {FLOOD}",
    "perftest": f"perftest --npubs 3 --nsubs 3 --qt 2 {SHORT} 500",
    "perftest, clients": f"perftest --clients 4 --qt 2 --packing 16 --delivery confirmed {SHORT} 500",
    "perftest, fanout": f"perftest --mode fanout --npubs 3 --nsubs 2 --qt 2 {SHORT} 500",
    "perftest, topic": f"perftest --mode topic --npubs 2 --nsubs 3 --qt 2 --delivery confirmed {SHORT} 500",
    "throughput": f"throughput --sizes 6 {FLOOD}",
    "batch-size": f"batch-size --sizes 2KiB {FLOOD}",
    "fe-spmc": f"fe-spmc --sizes 1,1MiB --consumers 3 {FLOOD}",
    "te-spsc": f"te-spsc --sizes 1,1MiB --patterns 16 {FLOOD}",
    "request-reply": "request-reply --clients 1 --threads 2 --match indexed,scan --preload 20 "
    "--sample 0.2 --warm-up 0.05 --repeats 1",
    "supply-chain": "supply-chain --topology horizontal --base 5 --agents 4 --warm-up 0.1 --duration 0.5 --bound 5",
    "confirmed": f"de-spsc --sizes 64 --delivery confirmed {FLOOD}",
    "one by one": f"de-spsc --sizes 64 --amqp-client pika {FLOOD}",
}


REASON_OF_PACE = re.compile("were planned|off the plan")
"""A reason that a busy machine may have: it did not keep the supply chain's pace. The answer may still be right."""


@pytest.fixture(scope="module")
def outcomes(rabbitmq_node: Node, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    commands = [f"{command} --transport {rabbitmq_node.url}" for command in COMMANDS.values()]
    results = tmp_path_factory.mktemp("results")
    return dict(zip(COMMANDS, benches(results, *commands, EXCHANGE_AMQP_PASSWORD=rabbitmq_node.password), strict=True))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_answer_of_a_benchmark_is_right(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name]["record"], outcomes[name]["err"]
    reasons = [reason for reason in outcomes[name]["record"]["reasons"] if not REASON_OF_PACE.search(reason)]
    assert reasons == [], outcomes[name]["err"]


def test_every_consumer_of_a_fanout_has_every_message(outcomes: dict[str, Outcome]) -> None:
    for row in outcomes["fe-spmc"]["record"]["rows"]:
        roles = row["repeats"][0]["roles"]
        for number in (1, 2, 3):
            assert roles[f"consumer {number}"]["received"] == roles["publisher"]["sent"]


def test_only_a_scan_looks_at_preloaded_messages(outcomes: dict[str, Outcome]) -> None:
    looks: dict[tuple[str, int], float] = {}
    for row in outcomes["request-reply"]["record"]["rows"]:
        figure = row["figures"].get("looks_per_reply", {"median": 0})
        looks[row["point"]["match"], row["point"]["preloaded"]] = figure["median"]

    assert looks["indexed", 0] == 0
    assert looks["indexed", 20] == 0
    assert 1 <= looks["scan", 0] < 10
    assert looks["scan", 20] > 10, "not 20: other clients hold some of the 20 messages"


def test_pairs_on_one_exchange_get_only_their_own_messages(outcomes: dict[str, Outcome]) -> None:
    (row,) = outcomes["de-mpmc"]["record"]["rows"]
    roles = row["repeats"][0]["roles"]
    for pair in (1, 2, 3):
        assert roles[f"consumer {pair}"]["received"] == roles[f"publisher {pair}"]["sent"]


def test_each_message_of_a_shared_queue_arrives_once(outcomes: dict[str, Outcome]) -> None:
    (row,) = outcomes["perftest"]["record"]["rows"]
    assert row["figures"]["transfers"]["median"] == 2 * 2 * 3 * 501


def test_clients_publish_and_subscribe(outcomes: dict[str, Outcome]) -> None:
    (row,) = outcomes["perftest, clients"]["record"]["rows"]
    medians = {name: estimate["median"] for name, estimate in row["figures"].items()}
    (repeat,) = row["repeats"]
    assert len(repeat["roles"]) == 4
    assert medians["transfers"] == 2 * 4 * 500
    assert medians["packed_out_per_s"] == pytest.approx(16 * medians["deliveries_per_s"])


def test_perftest_samples_the_machine(outcomes: dict[str, Outcome]) -> None:
    (row,) = outcomes["perftest, clients"]["record"]["rows"]
    (repeat,) = row["repeats"]
    assert {"user_percent", "system_percent", "interrupts_per_s"} <= row["figures"].keys()
    assert repeat["series"][-1].keys() >= {"second", "switches_per_s", "used_mb", "packets_per_s", "bytes_per_s"}


@pytest.mark.parametrize(("mode", "npubs", "nsubs"), [("fanout", 3, 2), ("topic", 2, 3)])
def test_each_subscriber_of_an_exchange_has_all_its_messages(
    mode: str, npubs: int, nsubs: int, outcomes: dict[str, Outcome]
) -> None:
    (row,) = outcomes[f"perftest, {mode}"]["record"]["rows"]
    assert row["figures"]["transfers"]["median"] == 2 * npubs * 500 * (1 + nsubs)
    roles = row["repeats"][0]["roles"]
    subscribers = [role for name, role in roles.items() if name.startswith("subscriber")]
    assert len(subscribers) == 2 * nsubs
    for subscriber in subscribers:
        assert subscriber["received"] == npubs * 500
