"""A run of the whole exchange through a real RabbitMQ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker import assert_is_ours_and_has_nagle_on, is_gone
from tests.exchange_command import ORDERS, REFERENCE_RUN, Running, run_exchange, run_exchange_in_process
from tests.machine import until
from transports.amqp.address import PASSWORD
from transports.amqp.broker import RabbitMqProbe
from transports.rabbitmq import NodeSettings, private_node

pytestmark = pytest.mark.usefixtures("no_standing_broker")


@pytest.mark.parametrize(
    ("client", "delivery"),
    [
        ("compiled", "durable"),
        pytest.param("compiled", "confirmed", marks=pytest.mark.long),
        pytest.param("pika", "acked", marks=pytest.mark.long),
        pytest.param("compiled", "lossy", marks=pytest.mark.long),  # what other tests run
    ],
)
def test_the_same_seed_gives_the_same_streams_through_a_broker(
    client: str, delivery: str, tmp_path: Path, at_broker: str, match_record: dict[str, object]
) -> None:
    how = ("--amqp-client", client, "--delivery", delivery, *REFERENCE_RUN)
    said = run_exchange(tmp_path, "--transport", at_broker, "--name", "streams", *how)
    assert said.code == 0, said.err
    record = said.record
    assert record["checksums"] == match_record["checksums"]
    assert (record["settings"]["amqp_client"], record["settings"]["delivery"]) == (client, delivery)
    assert "handshakes_refused" not in record["counts"], "only the broker knows"
    links = record["broker"]["links"]
    assert links["gateway"]["published"] == ORDERS + 2, "orders, a hello, an end"
    confirmed = [link["confirmed"] == link["published"] for link in links.values()]
    assert confirmed == [delivery in {"confirmed", "durable"}] * 2
    probe = RabbitMqProbe(at_broker, "streams")
    assert probe.depth() == {}, "the run has taken its queues down"
    probe.close()


@pytest.mark.long
def test_pairs_and_reporters_have_queues_of_their_own_and_leave_none(
    tmp_path: Path, at_broker: str, match_record: dict[str, object]
) -> None:
    how = ("--pairs", 2, "--reporters", 2, *REFERENCE_RUN, "--name", "pairs")
    said = run_exchange(tmp_path, "--transport", at_broker, *how)
    assert said.code == 0, said.err
    first, second = said.record["pairs"]
    assert first["checksums"] == match_record["checksums"] != second["checksums"]
    assert said.record["broker"]["deepest_queue"].keys() >= {"order", "2.order", "statistics", "2.statistics"}
    probe = RabbitMqProbe(at_broker, "pairs", ["2.order", "2.trade", "2.statistics"])
    assert probe.depth() == {}, "the run has taken its queues down"
    probe.close()


@pytest.mark.long
def test_a_broker_in_alarm_is_why_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with private_node(tmp_path / "node", settings=NodeSettings(memory_mark=0)) as node:
        monkeypatch.setenv(PASSWORD, node.password)
        place = f"amqp://{node.user}@{node.host}:{node.port}"
        said = run_exchange(tmp_path, "--transport", place, "--rate", 100, "--orders", 10, "--timeout", 2)
    assert (said.code, said.record["status"]) == (1, "partial")
    assert "it is in alarm for want of memory or disk" in said.record["reasons"][0]


def test_a_broker_of_its_own_is_set_as_told_measured_and_removed(
    running: Callable[..., Running], tmp_path: Path
) -> None:
    run = running(
        "--no-page", "--transport", "amqp", "--nagle", "broker", "--rate", 2000, "--orders", 4000
    ).wait_until_under_way()
    family = run.family()
    assert any("beam" in process.name() for process in family)
    said = run.finish()
    assert said.code == 0, said.err
    assert_is_ours_and_has_nagle_on(said.record)
    until(lambda: all(is_gone(process) for process in family), "broker and components gone")
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.long
def test_simplex_is_a_connection_to_publish_on_and_one_to_consume_on(
    tmp_path: Path, at_broker: str, match_record: dict[str, object]
) -> None:
    record = run_exchange(tmp_path, "--transport", at_broker, "--topology", "simplex", *REFERENCE_RUN).record
    assert record["checksums"] == match_record["checksums"]
    ends = [end for end in record["sockets"] if end["component"] == "gateway"]
    assert len({end["local"] for end in ends}) == 2
    assert record["broker"]["links"]["gateway"]["published"] == ORDERS + 2


def test_a_broker_that_dies_ends_the_run_as_partial(running: Callable[..., Running], tmp_path: Path) -> None:
    run = running(
        "--no-page", "--transport", "amqp", "--rate", 2000, "--duration", 600, "--timeout", 5
    ).wait_until_under_way()
    family = run.family()
    next(process for process in family if "beam" in process.name()).kill()
    said = run.finish()
    assert (said.code, said.record["status"]) == (1, "partial")
    assert any("the broker at 127.0.0.1" in reason and "went away" in reason for reason in said.record["reasons"])
    assert "Traceback" not in said.err
    assert said.record["counts"]["orders_sent"] > 0
    until(lambda: all(is_gone(process) for process in family), "components gone")
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--transport", "amqp://me:secret@localhost"), "a URL takes no password"),
        (("--transport", "amqps"), "amqps needs an address"),
        (("--transport", "amqp://me@localhost", "--nagle", "broker"), "is not ours"),
        (("--transport", "amqp?delivery=acked"), "--delivery"),
        (("--transport", "zeromq", "--delivery", "acked"), "zeromq has no broker"),
        (("--transport", "tcp", "--amqp-client", "pika"), "tcp has no broker"),
    ],
)
def test_a_mistake_is_said_before_anything_starts(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused = run_exchange_in_process(tmp_path / "results", *words)
    assert refused.code == 2
    assert said in refused.err
    assert "secret" not in refused.err
    assert not list((tmp_path / "results").glob("*"))


def test_a_wrong_password_ends_the_run_before_it_starts(
    tmp_path: Path, at_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "wrong")
    refused = run_exchange_in_process(tmp_path / "results", "--transport", at_broker)
    assert refused.code == 2
    assert "refuses user 'exchange'" in refused.err
    assert not list((tmp_path / "results").glob("*"))


def test_no_rabbitmq_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", str(tmp_path / "nowhere"))
    refused = run_exchange_in_process(tmp_path / "results", "--transport", "amqp")
    assert refused.code == 2
    assert "apt-get install rabbitmq-server" in refused.err
