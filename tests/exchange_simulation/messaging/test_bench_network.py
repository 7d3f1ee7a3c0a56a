"""`--network`, `--nagle`, `--cpus`: a benchmark's two hosts, and the errors for impossible networks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exchange_simulation.launching.network.probe import probe
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.options import settings_from_words
from exchange_simulation.messaging.plots import figures_of
from exchange_simulation.messaging.setup import plan_of
from tests.exchange_command import exchange, exchange_in_process

OPTIONS = ("--sizes", 64, "--count", 50, "--repeats", 1, "--rate", 500)


NEEDED = {"tools", "namespace", "veth", "bridge"}
"""Names of the findings of the probe that a network of namespaces needs."""


def need_namespaces() -> None:
    """Skip the test where networks of namespaces cannot be made."""
    lacking = [finding for finding in probe().findings.values() if finding.name in NEEDED and not finding.works]
    if lacking:
        pytest.skip(f"no namespaces here: {lacking[0]}")


def test_publisher_and_consumer_have_namespaces_and_their_own_nagle(tmp_path: Path) -> None:
    need_namespaces()
    network_options = ("--transport", "tcp,memory", "--network", "veth", "--nagle", "publisher", "--results", tmp_path)
    finished = exchange("bench", "de-spsc", *OPTIONS, *network_options, "--json")
    assert finished.code == 0, finished.err
    assert finished.record["left_out"] == ["memory: --nagle is publisher, and it has no TCP sockets"]
    assert [network["profile"] for network in finished.record["networks"]] == ["veth"]
    assert "tcp_nodelay" not in " ".join(finished.record["reasons"])
    (row,) = finished.record["rows"]
    roles = row["repeats"][0]["roles"]
    publisher_sockets = roles["publisher"]["sockets"]
    consumer_sockets = roles["consumer"]["sockets"]
    assert {socket["tcp_nodelay"] for socket in publisher_sockets} == {False}
    assert {socket["tcp_nodelay"] for socket in consumer_sockets} == {True}
    publisher_address, _, _ = publisher_sockets[0]["local"].rpartition(":")
    consumer_address, _, _ = consumer_sockets[0]["local"].rpartition(":")
    assert publisher_address != consumer_address
    assert publisher_address.startswith("10.77.")
    assert consumer_address.startswith("10.77.")


def test_two_networks_are_measured_in_turns_and_each_is_a_line(tmp_path: Path) -> None:
    need_namespaces()
    options = ("--transport", "tcp", "--sizes", "64,1KiB", "--count", 50, "--repeats", 2, "--network", "local,veth")
    finished = exchange("bench", "de-pp", *options, "--results", tmp_path, "--json")
    assert finished.code == 0, finished.err
    assert [network["profile"] for network in finished.record["networks"]] == ["veth"]
    hosts = {}
    for row in finished.record["rows"]:
        local_address = row["repeats"][0]["roles"]["publisher"]["sockets"][0]["local"]
        hosts.setdefault(row["point"]["network"], set()).add(local_address.rpartition(":")[0])
    assert hosts == {"local": {"127.0.0.1"}, "veth": {"10.77.1.1"}}
    lines = {series for figure in figures_of(finished.record) for series, *_ in figure.chart.numbers.rows}
    assert lines == {"local", "veth"}


def test_one_network_that_lacks_a_transport_leaves_out_that_network_alone() -> None:
    benchmark = benchmark_of("de-pp")
    settings, _ = settings_from_words(benchmark, ["--transport", "memory", "--network", "local,veth", "--sizes", "64"])
    plan = plan_of(benchmark, settings)
    assert [cell.network for cell in plan.cells] == ["local"]
    assert len(plan.left_out) == 1
    assert "memory: --network is veth" in plan.left_out[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--transport", "memory", "--network", "veth"), "veth, where this transport cannot be measured: use"),
        (("--transport", "tcp", "--nagle", "broker"), "tcp: --nagle broker, and it has no broker"),
        (("--transport", "amqp://guest@here", "--nagle", "broker"), "that broker is not ours: say amqp"),
        (("--transport", "tcp", "--nagle", "gateway"), "'gateway' is none of publisher, consumer, broker"),
        (("--transport", "tcp", "--network", "moon"), "no network is called 'moon'"),
        (("--transport", "tcp", "--network", "local,local"), "give one or more, each once, with commas between them"),
        (("--transport", "tcp", "--cpus", "gateway=0"), "give ROLE=CPU pairs of publisher, consumer"),
        (("--transport", "tcp", "--cpus", "publisher=4095"), "publisher=4095"),
    ],
)
def test_an_impossible_network_is_refused_before_the_start(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    if "publisher=4095" in words and 4095 in os.sched_getaffinity(0):
        pytest.skip("a machine with 4,096 processors")
    refused = exchange_in_process("bench", "de-spsc", *OPTIONS, *words, "--results", tmp_path)
    assert refused.code == 2, refused.err
    assert message in " ".join(refused.err.split())
    assert list(tmp_path.iterdir()) == []
