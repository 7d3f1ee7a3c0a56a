"""Roles that are started by hand, one by one, as on different hosts."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.messaging import by_hand
from tests.broker import shares_the_broker
from tests.exchange_simulation.messaging.role_commands import Scenario, play
from transports.rabbitmq import Node

COUNT = 500
ASK = "--threads 2 --warm-up 0.05 --sample 0.5"
PUBLISHED = ("fanout", "topic")


def scenarios(listen: str, connect: str, back: str = "") -> dict[str, Scenario]:
    """The roles of each scenario, in the order of their start.

    Without a broker listeners start first, since connectors need their places; over a broker subscribers start first.
    """
    queue_options = f"--pattern queue --publishers 2 --timeout 5 {listen}"
    roles_by_scenario = {
        "pair": [f"consume {listen} --count {COUNT}", f"publish {connect} --count {COUNT}"],
        "round trip": [f"answer {listen} --count {COUNT}", f"ask {connect} --count {COUNT}"],
        "queue": [
            f"consume {queue_options}",
            f"consume {queue_options}",
            f"publish --pattern queue --number 1 {connect} --count {COUNT}",
            f"publish --pattern queue --number 2 {connect} --count {COUNT}",
        ],
        "requests": [f"answer --pattern requests --threads 2 {listen}", f"ask --pattern requests {ASK} {connect}"],
    }
    for pattern in PUBLISHED:
        publish = f"publish --pattern {pattern} --consumers 2 {listen}{back} --count {COUNT}"
        consume = f"consume --pattern {pattern} {connect} --count {COUNT}"
        roles_by_scenario[pattern] = [publish, consume, consume] if back else [consume, consume, publish]
    return roles_by_scenario


Played = dict[str, list[dict[str, Any]]]
"""The outcomes of the roles of each scenario."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("zeromq", marks=pytest.mark.xdist_group("roles by hand")),
        pytest.param("amqp", marks=shares_the_broker),
    ],
)
def played(request: pytest.FixtureRequest) -> Played:
    if request.param == "zeromq":
        roles = scenarios("--listen zeromq://127.0.0.1:0", "--connect {url}", "?back=0")
        return dict(zip(roles, play("zeromq", *roles.values()), strict=True))
    node: Node = request.getfixturevalue("rabbitmq_node")
    roles = scenarios(f"--listen {node.url}", f"--connect {node.url}")
    roles_with_run: list[Scenario] = []
    for number, commands in enumerate(roles.values()):
        roles_with_run.append([f"{command} --run by-hand-{number}" for command in commands])
    return dict(zip(roles, play(node.url, *roles_with_run, EXCHANGE_AMQP_PASSWORD=node.password), strict=True))


def test_every_role_finishes(played: Played) -> None:
    for scenario, roles in played.items():
        for role in roles:
            assert role["code"] == 0, (scenario, role.get("stopped"), role["err"])


def test_both_ends_of_a_stream_print_the_same_count_and_checksum(played: Played) -> None:
    consumer, publisher = played["pair"]
    assert publisher["sent"] == COUNT
    assert consumer["received"] == COUNT
    assert publisher["sent_checksum"] == consumer["received_checksum"]


def test_a_consumer_has_no_latency_between_two_hosts_clocks(played: Played) -> None:
    consumer, _ = played["pair"]
    assert "latency_mean_us" not in consumer["figures"]


@pytest.mark.parametrize("name", ["round trip", "requests"])
def test_a_role_that_asks_has_every_answer_unchanged(name: str, played: Played) -> None:
    answer, ask = played[name]
    assert ask["sent"] > 0
    assert ask["received"] == ask["sent"]
    assert answer["sent"] == ask["sent"]
    assert ask["sent_checksum"] == ask["received_checksum"]


def test_consumers_of_a_queue_have_all_its_messages_together(played: Played) -> None:
    roles = played["queue"]
    sent_checksum = sum(int(role["sent_checksum"], 16) for role in roles) % 2**64
    received_checksum = sum(int(role["received_checksum"], 16) for role in roles) % 2**64

    assert sum(role["sent"] for role in roles) == 2 * COUNT
    assert sum(role["received"] for role in roles) == 2 * COUNT
    assert sent_checksum == received_checksum


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_subscriber_has_every_message(name: str, played: Played) -> None:
    (publisher,) = [role for role in played[name] if role["part"] == "publish"]
    first, second = [role for role in played[name] if role["part"] == "consume"]
    assert publisher["sent"] == COUNT
    assert first["received_checksum"] == publisher["sent_checksum"]
    assert second["received_checksum"] == publisher["sent_checksum"]


def run_role(*words: str) -> Any:
    """`exchange bench role` with these words, in this process."""
    return CliRunner().invoke(main, ["bench", "role", *words])


@pytest.mark.parametrize(("pattern", "wait"), [("pair", "0.1 s; 0 of 100,000 messages came"), ("queue", "0.3 s")])
def test_a_consumer_says_how_long_it_waited_for_a_peer(
    pattern: str, wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer of a queue also waits 0.2 s for other roles to come."""
    monkeypatch.setattr(by_hand, "OPEN_NS", 200_000_000)
    monkeypatch.setattr(by_hand._SessionAlone, "_others_come_ns", 200_000_000)
    words = ("--pattern", pattern, "--listen", "zeromq://127.0.0.1:0", "--run", "first", "--timeout", "0.1")
    finished = run_role("consume", *words)
    assert finished.exit_code == 1
    assert f"nothing came for {wait}" in finished.stdout


def test_a_role_without_an_address_is_refused() -> None:
    finished = run_role("consume", "--run", "first")
    assert finished.exit_code == 2
    assert "one of --listen and --connect" in finished.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("publish --pattern requests --connect tcp://127.0.0.1:1", "--pattern requests is not of publish"),
        ("publish --pattern queue --listen zeromq://127.0.0.1:0", "the role consume takes --listen"),
        ("publish --pattern fanout --listen tcp://127.0.0.1:0", "tcp has no pattern 'fanout'"),
    ],
)
def test_a_pattern_that_the_role_or_transport_lacks_is_refused(words: str, message: str) -> None:
    finished = run_role(*words.split(), "--run", "first")
    assert finished.exit_code == 2, finished.output
    assert message in " ".join(finished.output.split())
