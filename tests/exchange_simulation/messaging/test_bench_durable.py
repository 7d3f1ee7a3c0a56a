"""`bench --delivery durable`: the queues that it measures are what the word says, by the broker's own account."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import need_rabbitmq
from tests.exchange_command import command
from tests.machine import PATIENCE_S, until
from transports.amqp.address import PASSWORD
from transports.rabbitmq import Node
from transports.rabbitmq.node import VHOST

DURABLE = re.compile(r'queue,<<"([^"]+)">>\}\},\{durable,true\},\{exclusive,false\},\{messages,(\d+)\}')


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    """A node, and behind it those that followed."""
    need_rabbitmq()
    nodes = [Node.start(tmp_path / "node")]
    yield nodes
    nodes[-1].stop()


def durable_queues(node: Node, answer: Path) -> dict[str, int]:
    """Queues that outlive connection and broker, as the broker knows them, and how many messages each has."""
    answer.unlink(missing_ok=True)
    part = answer.with_suffix(".part")
    infos = f'rabbit_amqqueue:info_all(<<"{VHOST}">>, [name, durable, exclusive, messages])'
    node.evaluate(f'file:write_file("{part}", io_lib:format("~0p", [{infos}])), file:rename("{part}", "{answer}")')
    until(answer.exists, "the broker's answer")
    return {name: int(messages) for name, messages in DURABLE.findall(answer.read_text())}


@contextlib.contextmanager
def under_way(
    benchmark: str, pattern: str, node: Node, folder: Path
) -> Iterator[tuple[subprocess.Popen[str], set[str]]]:
    """A benchmark that would go on for long, and the durable queues of its two subscribers, with messages in them."""
    words = (*benchmark.split(), "--delivery", "durable", "--sizes", 64, "--count", 2_000_000, "--repeats", 1)
    bench = subprocess.Popen(
        command("bench", *words, "--transport", node.url, "--results", folder / "results"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, PASSWORD: node.password},
    )

    def in_full_swing() -> set[str]:
        found = {name: n for name, n in durable_queues(node, folder / "queues").items() if pattern in name}
        return set(found) if len(found) == 2 and any(found.values()) else set()

    try:
        yield bench, until(in_full_swing, "messages in durable queues of subscribers")
    finally:
        bench.kill()
        bench.communicate()


def test_the_queues_of_durable_subscribers_are_durable(rabbitmq_node: Node, tmp_path: Path) -> None:
    with under_way("fe-spmc --consumers 2", ".fanout.", rabbitmq_node, tmp_path) as (_, queues):
        assert len(queues) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("benchmark", "pattern"), [("fe-spmc --consumers 2", ".fanout."), ("te-spsc --patterns 2", ".topic.")]
)
def test_the_queues_of_durable_subscribers_outlive_the_broker(
    benchmark: str, pattern: str, nodes: list[Node], tmp_path: Path
) -> None:
    with under_way(benchmark, pattern, nodes[0], tmp_path) as (bench, queues):
        nodes.append(nodes[0].restart())
        _, said = bench.communicate(timeout=PATIENCE_S)
    assert (bench.returncode, "the broker at" in said) == (1, True), said
    assert queues <= durable_queues(nodes[-1], tmp_path / "queues").keys()
