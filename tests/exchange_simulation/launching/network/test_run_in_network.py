"""Runs whose components are in different network namespaces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker import need_rabbitmq
from tests.exchange_command import run_exchange, run_exchange_in_process

SMALL = ("--rate", 1000, "--orders", 500, "--seed", 7)


@pytest.fixture(autouse=True)
def namespaces(available: Callable[[str], str]) -> None:
    available("veth")


@pytest.mark.parametrize(
    "transport", ["zeromq", *(pytest.param(each, marks=pytest.mark.long) for each in ("amqp", "tcp"))]
)
def test_a_run_in_namespaces_has_the_same_answers(transport: str, tmp_path: Path) -> None:
    if transport == "amqp":
        need_rabbitmq()
    finished = run_exchange(tmp_path, "--transport", transport, "--network", "veth", *SMALL)
    assert finished.code == 0, finished.err
    here = run_exchange_in_process(tmp_path, *SMALL)
    assert finished.record["checksums"] == here.record["checksums"]
    assert finished.record["network"]["mechanism"] == "veth"
    addresses = {end["component"]: end["local"].partition(":")[0] for end in finished.record["sockets"]}
    assert len(set(addresses.values())) == len(addresses), "each component has an address of its own"
    assert addresses["gateway"] == finished.record["network"]["address"]["gateway"] != "127.0.0.1"


@pytest.mark.parametrize("transport", ["zeromq", pytest.param("amqp", marks=pytest.mark.long)])
def test_subscribers_have_a_link_of_their_own(transport: str, tmp_path: Path, available: Callable[[str], str]) -> None:
    if transport == "amqp":
        need_rabbitmq()
    network = available("wan10")
    finished = run_exchange(tmp_path, "--transport", transport, "--network", network, "--subscribers", 2, *SMALL)
    assert finished.code == 0, finished.err
    record = finished.record
    assert "engine-subscriber" in record["network"]["round_trip_us"]
    for entry in record["market_data"]["subscribers"]:
        assert entry["messages"] == record["market_data"]["published"]["messages"]
        assert entry["delivery_us"]["p50"] > 10_000


@pytest.mark.long
def test_nagle_is_switched_and_read_back_in_a_network(tmp_path: Path) -> None:
    record = run_exchange(tmp_path, "--transport", "tcp", "--network", "veth", "--nagle", "all", *SMALL).record
    assert {end["tcp_nodelay"] for end in record["sockets"]} == {False}
    assert record["settings"]["network"] == "veth"
