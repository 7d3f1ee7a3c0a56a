"""`--network`, `--nagle`, `--cpus`: a benchmark's two hosts, and what cannot be there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exchange_simulation.launching.network.probe import probe
from tests.exchange_command import exchange, exchange_in_process

WORDS = ("--sizes", 64, "--count", 50, "--repeats", 1, "--rate", 500)


def test_publisher_and_consumer_have_a_namespace_each(tmp_path: Path) -> None:
    """One of them has Nagle's algorithm on."""
    if lacking := [each for each in probe().findings.values() if not each.works and each.name in NEEDED]:
        pytest.skip(f"no namespaces here: {lacking[0]}")
    joined = ("--transport", "tcp,memory", "--network", "veth", "--nagle", "publisher", "--results", tmp_path)
    said = exchange("bench", "de-spsc", *WORDS, *joined, "--json")
    assert said.code == 0, said.err
    assert said.record["left_out"] == ["memory: --nagle is publisher, and it has no TCP sockets"]
    assert said.record["network"]["profile"] == "veth"
    assert "tcp_nodelay" not in " ".join(said.record["reasons"])
    (row,) = said.record["rows"]
    sockets = {name: role["sockets"] for name, role in row["repeats"][0]["roles"].items()}
    assert {each["tcp_nodelay"] for each in sockets["publisher"]} == {False}
    assert {each["tcp_nodelay"] for each in sockets["consumer"]} == {True}
    addresses = {name: each["local"].rpartition(":")[0] for name, (each, *_) in sockets.items()}
    assert addresses["publisher"] != addresses["consumer"]
    assert all(address.startswith("10.77.") for address in addresses.values())


NEEDED = {"tools", "namespace", "veth", "bridge"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--transport", "memory", "--network", "veth"), "veth, where this transport cannot be measured: use"),
        (("--transport", "tcp", "--nagle", "broker"), "tcp: --nagle broker, and it has no broker"),
        (("--transport", "amqp://guest@here", "--nagle", "broker"), "that broker is not ours: say amqp"),
        (("--transport", "tcp", "--nagle", "gateway"), "'gateway' is none of publisher, consumer, broker"),
        (("--transport", "tcp", "--network", "moon"), "no network is called 'moon'"),
        (("--transport", "tcp", "--cpus", "gateway=0"), "give ROLE=CPU pairs of publisher, consumer"),
        (("--transport", "tcp", "--cpus", "publisher=4095"), "publisher=4095"),
    ],
)
def test_what_cannot_be_there_is_a_sentence_before_the_start(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    if "publisher=4095" in words and 4095 in os.sched_getaffinity(0):
        pytest.skip("a machine with 4,096 processors")
    refused = exchange_in_process("bench", "de-spsc", *WORDS, *words, "--results", tmp_path)
    assert refused.code == 2, refused.err
    assert told in " ".join(refused.err.split())
    assert list(tmp_path.iterdir()) == []
