"""Several brokers in one benchmark: each transport's links reach the transport's own broker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.broker import need_rabbitmq
from tests.exchange_simulation.messaging.bench_commands import bench


def test_two_private_brokers_with_passwords_of_their_own_serve_one_benchmark(tmp_path: Path) -> None:
    need_rabbitmq()

    outcome = bench(tmp_path, "de-pp --transport amqp,amqp?allocator=aobf --sizes 64 --count 20 --repeats 2")

    assert outcome["code"] == 0, outcome["err"]
    transports = {row["transport"] for row in outcome["record"]["rows"]}
    assert transports == {"amqp", "amqp?allocator=aobf"}


def test_pairs_are_shared_out_to_two_brokers_and_the_numbers_of_brokers_are_compared(tmp_path: Path) -> None:
    need_rabbitmq()

    outcome = bench(tmp_path, "de-mpmc --transport amqp --sizes 64 --pairs 2 --brokers 1,2 --quick --repeats 2")

    assert outcome["code"] == 0, outcome["err"]
    ports_by_brokers = {}
    for row in outcome["record"]["rows"]:
        roles = row["repeats"][0]["roles"]
        ports = {socket["peer"] for role in roles.values() for socket in role["sockets"]}
        ports_by_brokers[row["point"]["brokers"]] = len(ports)
    assert ports_by_brokers == {1: 1, 2: 2}
    (verdict,) = outcome["record"]["verdicts"]
    assert (verdict["first"], verdict["second"]) == ("amqp, 1 broker", "amqp, 2 brokers")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("de-mpmc --transport zeromq --brokers 2", "--brokers is 2, and it has none"),
        ("de-mpmc --transport amqp://guest@here --brokers 2", "that broker is not ours: say amqp alone"),
        ("de-mpmc --transport zeromq --cpus broker=0", "--cpus broker, and it has no broker"),
        ("de-mpmc --transport amqp --brokers 9", "brokers are 1 to 8"),
    ],
)
def test_brokers_that_cannot_be_had_are_refused_before_the_start(tmp_path: Path, words: str, sentence: str) -> None:
    outcome = bench(tmp_path, words)

    assert outcome["code"] == 2
    assert sentence in " ".join(outcome["err"].split())


def test_a_private_broker_stays_on_its_processor(tmp_path: Path) -> None:
    need_rabbitmq()
    processor = min(os.sched_getaffinity(0))

    outcome = bench(tmp_path, f"de-spsc --transport amqp --sizes 64 --quick --repeats 1 --cpus broker={processor}")

    assert outcome["code"] == 0, outcome["err"]
    (row,) = outcome["record"]["rows"]
    assert row["figures"]["broker_cores"]["median"] <= 1.05
