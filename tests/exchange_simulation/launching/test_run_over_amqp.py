"""A run of the whole exchange through a real RabbitMQ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
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
        pytest.param("compiled", "lossy", marks=pytest.mark.long),  # shorter tests cover this combination too
    ],
)
def test_the_same_seed_gives_the_same_streams_through_a_broker(
    client: str, delivery: str, tmp_path: Path, at_broker: str, match_record: dict[str, object]
) -> None:
    options = ("--amqp-client", client, "--delivery", delivery, *REFERENCE_RUN)
    finished = run_exchange(tmp_path, "--transport", at_broker, "--name", "streams", *options)
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["checksums"] == match_record["checksums"]
    assert record["settings"]["amqp_client"] == client
    assert record["settings"]["delivery"] == delivery
    assert "handshakes_refused" not in record["counts"], "only the broker knows"
    links = record["broker"]["links"]
    assert links["gateway"]["published"] == ORDERS + 2, "orders, a hello, an end"
    for link in links.values():
        are_all_confirmed = link["confirmed"] == link["published"]
        assert are_all_confirmed == (delivery in {"confirmed", "durable"})
    probe = RabbitMqProbe(at_broker, "streams")
    assert probe.depth() == {}, "the run has taken its queues down"
    probe.close()


@pytest.mark.long
def test_pairs_and_reporters_have_separate_queues_and_leave_none(
    tmp_path: Path, at_broker: str, match_record: dict[str, object]
) -> None:
    options = ("--pairs", 2, "--reporters", 2, *REFERENCE_RUN, "--name", "pairs")
    finished = run_exchange(tmp_path, "--transport", at_broker, *options)
    assert finished.code == 0, finished.err
    first, second = finished.record["pairs"]
    assert first["checksums"] == match_record["checksums"]
    assert second["checksums"] != match_record["checksums"]
    assert finished.record["broker"]["deepest_queue"].keys() >= {"order", "2.order", "statistics", "2.statistics"}
    probe = RabbitMqProbe(at_broker, "pairs", ["2.order", "2.trade", "2.statistics"])
    assert probe.depth() == {}, "the run has taken its queues down"
    probe.close()


@pytest.mark.long
def test_a_broker_in_alarm_is_named_as_the_reason_for_missing_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private_node(tmp_path / "node", settings=NodeSettings(memory_mark=0)) as node:
        monkeypatch.setenv(PASSWORD, node.password)
        place = f"amqp://{node.user}@{node.host}:{node.port}"
        finished = run_exchange(tmp_path, "--transport", place, "--rate", 100, "--orders", 10, "--timeout", 2)
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert "it is in alarm for want of memory or disk" in finished.record["reasons"][0]


def test_a_private_broker_takes_the_nagle_option_and_is_removed(
    running: Callable[..., Running], tmp_path: Path
) -> None:
    run = running(
        "--no-page", "--transport", "amqp", "--nagle", "broker", "--rate", 2000, "--orders", 4000
    ).wait_until_under_way()
    family = run.family()
    assert broker_process(family)
    finished = run.finish()
    assert finished.code == 0, finished.err
    assert_is_ours_and_has_nagle_on(finished.record)
    until(lambda: all(is_gone(process) for process in family), "broker and components gone")
    assert list((tmp_path / "scratch").iterdir()) == []


def broker_process(family: list[psutil.Process]) -> psutil.Process:
    """RabbitMQ's process: it runs in Erlang's virtual machine, whose program is called beam."""
    (process,) = [process for process in family if "beam" in process.name()]
    return process


@pytest.mark.long
def test_a_simplex_link_has_a_connection_for_each_direction(
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
    broker_process(family).kill()
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert any("the broker at 127.0.0.1" in reason and "went away" in reason for reason in finished.record["reasons"])
    assert "Traceback" not in finished.err
    assert finished.record["counts"]["orders_sent"] > 0
    until(lambda: all(is_gone(process) for process in family), "components gone")
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--transport", "amqp://me:secret@localhost"), "a URL takes no password"),
        (("--transport", "amqps"), "amqps needs an address"),
        (("--transport", "amqp://me@localhost", "--nagle", "broker"), "is not ours"),
        (("--transport", "amqp?delivery=acked"), "--delivery"),
        (("--transport", "zeromq", "--delivery", "acked"), "zeromq has no broker"),
        (("--transport", "tcp", "--amqp-client", "pika"), "tcp has no broker"),
    ],
)
def test_a_mistake_gets_an_error_before_anything_starts(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    refused = run_exchange_in_process(tmp_path / "results", *options)
    assert refused.code == 2
    assert message in refused.err
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


def test_without_rabbitmq_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", str(tmp_path / "nowhere"))
    refused = run_exchange_in_process(tmp_path / "results", "--transport", "amqp")
    assert refused.code == 2
    assert "apt-get install rabbitmq-server" in refused.err
