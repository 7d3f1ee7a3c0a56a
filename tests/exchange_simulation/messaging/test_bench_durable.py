"""`bench --delivery durable`: the measured queues are durable, as the broker reports."""

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
    """A list with a node; tests append the node that follows it after a restart."""
    need_rabbitmq()
    nodes = [Node.start(tmp_path / "node")]
    yield nodes
    nodes[-1].stop()


def durable_queues(node: Node, answer: Path) -> dict[str, int]:
    """The number of messages of each durable queue, as the broker reports; its answer is written to a file."""
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
    """Yield a benchmark that runs for a long time, and the names of the durable queues of its two subscribers.

    At least one of these queues has messages.
    """
    words = (*benchmark.split(), "--delivery", "durable", "--sizes", 64, "--count", 2_000_000, "--repeats", 1)
    bench = subprocess.Popen(
        command("bench", *words, "--transport", node.url, "--results", folder / "results"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, PASSWORD: node.password},
    )

    def queues_with_messages() -> set[str]:
        messages_by_queue = {}
        for name, messages in durable_queues(node, folder / "queues").items():
            if pattern in name:
                messages_by_queue[name] = messages
        if len(messages_by_queue) < 2 or not any(messages_by_queue.values()):
            return set()
        return set(messages_by_queue)

    try:
        yield bench, until(queues_with_messages, "messages in durable queues of subscribers")
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
        _, err = bench.communicate(timeout=PATIENCE_S)
    assert bench.returncode == 1, err
    assert "the broker at" in err
    assert queues <= durable_queues(nodes[-1], tmp_path / "queues").keys()
