"""The private brokers of a trial: runs with equal settings share one, and it ends with the trial."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from exchange_simulation.launching.launch.brokers import Brokers
from tests.broker import assert_is_ours_and_has_nagle_on, is_gone
from tests.exchange_command import command
from tests.machine import PATIENCE_S, until
from transports.amqp.broker import PrivateRabbitMq, RabbitMq
from transports.declaration import RunningBroker
from transports.rabbitmq import Node, NodeAddress

FAST = (
    "--transports",
    "amqp",
    "--nagle",
    "broker",
    "--rates",
    1000,
    "--repeats",
    1,
    "--duration",
    0.1,
    "--pause",
    0,
    "--keep-noisy",
    "--no-spark",
)


pytestmark = pytest.mark.usefixtures("no_standing_broker")


class Comparison:
    """`exchange sweep` under way, its scratch folders in a place of its own."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "results" / "mine"
        self.scratch = place / "scratch"
        self.scratch.mkdir()
        words = command("sweep", *FAST, "--results", place / "results", "--name", "mine")
        self.process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(self.scratch)},
        )

    def family(self) -> list[psutil.Process]:
        """Once an order has gone through the broker: the node, its helpers, watchdogs, components."""
        until(self._is_warm, "the warm-up's record")
        family = psutil.Process(self.process.pid).children(recursive=True)
        assert any("beam" in process.name() for process in family), "the node stays after the run"
        return family

    def _is_warm(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1]
        return bool(list(self.folder.glob("00-*/run.json")))

    def records(self) -> list[dict[str, Any]]:
        """The records of the runs that met a broker."""
        records = [orjson.loads(path.read_bytes()) for path in sorted(self.folder.glob("*/run.json"))]
        return [record for record in records if record.get("broker")]

    def brokers(self) -> list[tuple[int, int]]:
        """Process and port of the broker of each run that met one."""
        return [(record["broker"]["pid"], record["broker"]["port"]) for record in self.records()]

    def assert_nothing_is_left_of(self, family: list[psutil.Process]) -> None:
        until(lambda: all(is_gone(process) for process in family), "all processes gone")
        until(lambda: not list(self.scratch.iterdir()), "scratch folders gone")


@pytest.fixture
def comparison(tmp_path: Path) -> Iterator[Comparison]:
    started = Comparison(tmp_path)
    with started.process:
        yield started
        started.process.kill()


def test_one_node_serves_all_runs_of_a_comparison_and_ends_with_it(
    comparison: Comparison,
) -> None:
    """The node has the settings of the options, and is measured."""
    family = comparison.family()
    _, err = comparison.process.communicate(timeout=PATIENCE_S)
    assert comparison.process.returncode == 0, err
    assert len(comparison.brokers()) == 2, "a warm-up and a repeat"
    assert len(set(comparison.brokers())) == 1
    for record in comparison.records():
        assert_is_ours_and_has_nagle_on(record)
    comparison.assert_nothing_is_left_of(family)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_comparison_keeps_runs_and_ends_its_node(number: signal.Signals, comparison: Comparison) -> None:
    family = comparison.family()
    comparison.process.send_signal(number)
    _, err = comparison.process.communicate(timeout=PATIENCE_S)
    assert comparison.process.returncode == 128 + number
    assert "exchange sweep --resume mine goes on" in err
    assert "Traceback" not in err
    assert (comparison.folder / "comparison.json").exists()
    comparison.assert_nothing_is_left_of(family)


@pytest.mark.long
def test_the_node_of_a_comparison_that_is_killed_ends_by_itself(comparison: Comparison) -> None:
    family = comparison.family()
    comparison.process.kill()
    comparison.assert_nothing_is_left_of(family)


@pytest.mark.long
def test_a_killed_node_is_replaced_and_loses_at_most_one_run(comparison: Comparison) -> None:
    next(process for process in comparison.family() if "beam" in process.name()).kill()
    _, err = comparison.process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err
    assert len(set(comparison.brokers())) == 2, "its successor serves what is left"
    records_after_warm_up = comparison.folder.glob("0[12]-*/run.json")
    assert "complete" in [orjson.loads(path.read_bytes())["status"] for path in records_after_warm_up]


def test_the_standing_node_is_used_only_for_its_own_nodelay(rabbitmq_node: Node) -> None:
    with pytest.MonkeyPatch.context() as patch, Brokers() as brokers:
        patch.setattr("transports.amqp.broker.running_node", lambda: rabbitmq_node)
        assert brokers.get(RabbitMq(), nodelay=True).server is rabbitmq_node
        assert RabbitMq().standing(nodelay=False) is None


@pytest.mark.long
def test_runs_with_the_same_nodelay_share_a_node() -> None:
    with Brokers() as brokers:
        with_nodelay = brokers.get(RabbitMq(), nodelay=True)
        with_nagle = brokers.get(RabbitMq(), nodelay=False)
        assert brokers.get(RabbitMq(), nodelay=True) is with_nodelay
        assert brokers.get(RabbitMq(), nodelay=False) is with_nagle
        assert node_of(with_nodelay).pid != node_of(with_nagle).pid
        nodes = [psutil.Process(node_of(broker).pid) for broker in (with_nodelay, with_nagle)]
    assert all(is_gone(node) for node in nodes)


def node_of(broker: RunningBroker) -> NodeAddress:
    assert isinstance(broker.server, PrivateRabbitMq)
    return broker.server.node
