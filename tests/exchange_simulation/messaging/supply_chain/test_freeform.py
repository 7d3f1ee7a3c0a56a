"""A freeform workload has the sizes and the persistence of its file, in the plan and in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation.messaging.supply_chain.messages import Group
from exchange_simulation.messaging.supply_chain.plan import SupplyChainPlan
from exchange_simulation.messaging.supply_chain.topologies import EXAMPLE, freeform
from tests.broker import need_rabbitmq
from tests.exchange_simulation.messaging.bench_commands import bench


def config(folder: Path) -> Path:
    path = folder / "mine.toml"
    path.write_text(EXAMPLE)
    return path


def test_the_plan_has_the_sizes_and_the_groups_of_the_file(tmp_path: Path) -> None:
    plan = SupplyChainPlan.of(freeform(config(tmp_path)))

    flows = {flow.message.name: flow for flow in plan.flows}
    assert flows["order"].kb == pytest.approx(0.95 * 1 + 0.04 * 4 + 0.01 * 20)
    assert flows["order"].message.group is Group.C
    assert flows["orderConf"].message.group is Group.D, "messages without an entry are the paper's"
    assert flows["orderConf"].kb == pytest.approx(2.63, abs=0.01)


def test_a_run_sends_messages_of_these_sizes(tmp_path: Path) -> None:
    need_rabbitmq()
    options = "--interactions 1 --warm-up 0.1 --duration 1 --bound 5 --agents 4 --transport amqp"

    path = config(tmp_path)
    path.write_text(EXAMPLE.replace("[1.0, 4.0, 20.0]", "[2.0, 2.0, 2.0]"))

    outcome = bench(tmp_path, f"supply-chain --topology freeform --config {path} {options}")

    (row,) = outcome["record"]["rows"]
    assert row["repeats"][0]["figures"]["order_kb"] == 2.0
