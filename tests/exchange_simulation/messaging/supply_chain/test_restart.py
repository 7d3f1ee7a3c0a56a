"""The broker is restarted during a run: no persistent message is lost, and other losses are counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.broker import need_rabbitmq
from tests.exchange_command import exchange_in_process
from tests.exchange_simulation.messaging.bench_commands import bench
from transports.rabbitmq import Node

SHORT = "--topology horizontal --base 10 --agents 6 --warm-up 0.1 --duration 3 --restart-after 1 --drain 60"


def test_persistent_messages_survive_a_restart_of_the_broker(tmp_path: Path) -> None:
    need_rabbitmq()
    outcome = bench(tmp_path, f"supply-chain {SHORT}")
    assert outcome["record"]["reasons"] == [], outcome["err"]
    assert outcome["code"] == 0, outcome["err"]
    (row,) = outcome["record"]["rows"]
    figures = {name: estimate["median"] for name, estimate in row["figures"].items()}
    assert figures["lost_not_persistent"] > 0, "the broker was away"
    totals = total_counts(row["repeats"][0]["roles"])
    for name in ("order", "shipConf", "priceUpdate", "callForOffers", "invoice", "inventoryInfo"):
        total = totals[name]
        assert total["expected"] > 0, name
        assert total["received"] - total["doubled"] == total["expected"], (name, total)
    assert totals["pShipConf"]["sent"] == totals["callForOffers"]["sent"], "every purchase came to its end"


def total_counts(roles: dict[str, Any]) -> dict[str, Counter[str]]:
    """The counts of each message over all roles."""
    totals: dict[str, Counter[str]] = {}
    for role in roles.values():
        for name, counts in role["details"]["messages"].items():
            total = totals.setdefault(name, Counter())
            for field in ("sent", "expected", "received", "doubled"):
                total[field] += counts[field]
    return totals


def test_a_broker_that_is_not_ours_is_not_restarted(rabbitmq_node: Node, tmp_path: Path) -> None:
    words = ("supply-chain", *SHORT.split(), "--transport", rabbitmq_node.url, "--results", tmp_path)
    finished = exchange_in_process("bench", *words, EXCHANGE_AMQP_PASSWORD=rabbitmq_node.password)
    assert finished.code == 2
    assert list(tmp_path.iterdir()) == []
    assert "--restart-after needs a broker of its own" in finished.err
