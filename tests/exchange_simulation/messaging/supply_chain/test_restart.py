"""The broker ends in the middle and comes back: nothing persistent is lost, the rest is counted."""

from __future__ import annotations

from pathlib import Path

from tests.broker import need_rabbitmq
from tests.exchange_command import exchange_in_process
from tests.exchange_simulation.messaging.bench_commands import bench
from transports.rabbitmq import Node

SHORT = "--topology horizontal --base 10 --agents 6 --warm-up 0.1 --duration 3 --restart-after 1 --drain 60"


def test_what_is_persistent_survives_the_broker_s_restart(tmp_path: Path) -> None:
    need_rabbitmq()
    outcome = bench(tmp_path, f"supply-chain {SHORT}")
    assert (outcome["code"], outcome["record"]["reasons"]) == (0, []), outcome["err"]
    (row,) = outcome["record"]["rows"]
    figures = {name: estimate["median"] for name, estimate in row["figures"].items()}
    assert figures["lost_not_persistent"] > 0, "the broker was away"
    by_message: dict[str, dict[str, int]] = {}
    for role in row["repeats"][0]["roles"].values():
        for name, counts in role["details"]["messages"].items():
            for what in ("sent", "expected", "received", "doubled"):
                total = by_message.setdefault(name, {})
                total[what] = total.get(what, 0) + counts[what]
    for name in ("order", "shipConf", "priceUpdate", "callForOffers", "invoice", "inventoryInfo"):
        counts = by_message[name]
        assert counts["received"] - counts["doubled"] == counts["expected"] > 0, (name, counts)
    assert by_message["pShipConf"]["sent"] == by_message["callForOffers"]["sent"], "every chain came to its end"


def test_a_broker_that_is_not_ours_is_not_restarted(rabbitmq_node: Node, tmp_path: Path) -> None:
    words = ("supply-chain", *SHORT.split(), "--transport", rabbitmq_node.url, "--results", tmp_path)
    said = exchange_in_process("bench", *words, EXCHANGE_AMQP_PASSWORD=rabbitmq_node.password)
    assert (said.code, list(tmp_path.iterdir())) == (2, [])
    assert "--restart-after needs a broker of its own" in said.err
