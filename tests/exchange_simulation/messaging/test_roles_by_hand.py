"""Roles that are started one by one, as on hosts of their own."""

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
    """Without a broker listeners come first, since their place is known then; through a broker subscribers do."""
    shared = f"--pattern queue --publishers 2 --timeout 5 {listen}"
    found = {
        "pair": [f"consume {listen} --count {COUNT}", f"publish {connect} --count {COUNT}"],
        "round trip": [f"answer {listen} --count {COUNT}", f"ask {connect} --count {COUNT}"],
        "queue": [
            *[f"consume {shared}"] * 2,
            *(f"publish --pattern queue --number {number} {connect} --count {COUNT}" for number in (1, 2)),
        ],
        "requests": [f"answer --pattern requests --threads 2 {listen}", f"ask --pattern requests {ASK} {connect}"],
    }
    for pattern in PUBLISHED:
        publish = f"publish --pattern {pattern} --consumers 2 {listen}{back} --count {COUNT}"
        consume = f"consume --pattern {pattern} {connect} --count {COUNT}"
        found[pattern] = [publish, consume, consume] if back else [consume, consume, publish]
    return found


Played = dict[str, list[dict[str, Any]]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("zeromq", marks=pytest.mark.xdist_group("roles by hand")),
        pytest.param("amqp", marks=shares_the_broker),
    ],
)
def played(request: pytest.FixtureRequest) -> Played:
    if request.param == "zeromq":
        asked = scenarios("--listen zeromq://127.0.0.1:0", "--connect {url}", "?back=0")
        return dict(zip(asked, play("zeromq", *asked.values()), strict=True))
    node: Node = request.getfixturevalue("rabbitmq_node")
    asked = scenarios(f"--listen {node.url}", f"--connect {node.url}")
    named = [[f"{words} --run by-hand-{number}" for words in each] for number, each in enumerate(asked.values())]
    return dict(zip(asked, play(node.url, *named, EXCHANGE_AMQP_PASSWORD=node.password), strict=True))


def test_every_role_comes_to_its_end(played: Played) -> None:
    told = [(name, role["code"], role.get("stopped"), role["err"]) for name, own in played.items() for role in own]
    assert [each for each in told if each[1]] == []


def test_a_stream_s_ends_tell_the_same_of_what_went_between_them(played: Played) -> None:
    consumer, publisher = played["pair"]
    assert publisher["sent"] == consumer["received"] == COUNT
    assert publisher["sent_checksum"] == consumer["received_checksum"]
    assert "latency_mean_us" not in consumer["figures"]  # it would be between two hosts' clocks


@pytest.mark.parametrize("name", ["round trip", "requests"])
def test_who_asks_has_every_answer_as_it_was_sent(name: str, played: Played) -> None:
    answer, ask = played[name]
    assert ask["sent"] == ask["received"] == answer["sent"] > 0
    assert ask["sent_checksum"] == ask["received_checksum"]


def test_who_shares_a_queue_has_all_of_it_together(played: Played) -> None:
    *consumers, first, second = played["queue"]
    assert sum(role["received"] for role in consumers) == first["sent"] + second["sent"] == 2 * COUNT
    sums = [sum(int(role[f"{what}_checksum"], 16) for role in played["queue"]) % 2**64 for what in ("sent", "received")]
    assert sums[0] == sums[1]


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_subscriber_has_everything(name: str, played: Played) -> None:
    (publisher,) = [role for role in played[name] if role["part"] == "publish"]
    consumers = [role for role in played[name] if role["part"] == "consume"]
    assert [role["received_checksum"] for role in consumers] == [publisher["sent_checksum"]] * 2
    assert publisher["sent"] == COUNT


def role(*words: str) -> Any:
    return CliRunner().invoke(main, ["bench", "role", *words])


@pytest.mark.parametrize(("pattern", "told"), [("pair", "0.1 s; 0 of 100,000 messages came"), ("queue", "0.3 s")])
def test_a_peer_that_never_comes_is_told(pattern: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The consumer of a queue also waits for other roles to come, and named --timeout alone."""
    monkeypatch.setattr(by_hand, "OPEN_NS", 200_000_000)
    monkeypatch.setattr(by_hand._SessionAlone, "_others_come_ns", 200_000_000)
    words = ("--pattern", pattern, "--listen", "zeromq://127.0.0.1:0", "--run", "first", "--timeout", "0.1")
    done = role("consume", *words)
    assert done.exit_code == 1
    assert f"nothing came for {told}" in done.stdout


def test_a_role_listens_or_connects() -> None:
    done = role("consume", "--run", "first")
    assert done.exit_code == 2
    assert "one of --listen and --connect" in done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("publish --pattern requests --connect tcp://127.0.0.1:1", "--pattern requests is not of publish"),
        ("publish --pattern queue --listen zeromq://127.0.0.1:0", "the role consume takes --listen"),
        ("publish --pattern fanout --listen tcp://127.0.0.1:0", "tcp has no pattern 'fanout'"),
    ],
)
def test_a_pattern_that_is_not_to_be_had_is_refused(words: str, told: str) -> None:
    done = role(*words.split(), "--run", "first")
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.output.split())
