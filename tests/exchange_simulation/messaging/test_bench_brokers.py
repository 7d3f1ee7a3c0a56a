"""Several brokers in one benchmark: each transport's links reach the transport's own broker."""

from __future__ import annotations

from pathlib import Path

from tests.broker import need_rabbitmq
from tests.exchange_simulation.messaging.bench_commands import bench


def test_two_private_brokers_with_passwords_of_their_own_serve_one_benchmark(tmp_path: Path) -> None:
    need_rabbitmq()

    outcome = bench(tmp_path, "de-pp --transport amqp,amqp?allocator=aobf --sizes 64 --count 20 --repeats 2")

    assert outcome["code"] == 0, outcome["err"]
    transports = {row["transport"] for row in outcome["record"]["rows"]}
    assert transports == {"amqp", "amqp?allocator=aobf"}
