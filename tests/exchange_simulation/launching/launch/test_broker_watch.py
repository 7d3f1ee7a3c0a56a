"""The watch over a broker never ends the run."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from types import SimpleNamespace

import psutil
import pytest

from exchange_simulation.launching.launch import broker_watch
from exchange_simulation.launching.launch.broker_watch import BrokerWatch
from exchange_simulation.launching.record.broker_pauses import pause_words
from transports.base import PeerGone


@dataclass
class ScriptedProbe:
    """Answers with these depths, one look after the other, and then finds that the broker is gone."""

    depths: list[dict[str, int]]
    looks: int = field(default=0)
    failure: Exception = field(default_factory=lambda: PeerGone("the broker went away"))
    calls: list[str] = field(default_factory=list)

    def depth(self) -> dict[str, int]:
        self.looks += 1
        if not self.depths:
            raise self.failure
        return self.depths.pop(0)

    def take_down(self) -> None:
        self.calls.append("take_down")

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> BrokerWatch:
    """A watch whose every look is due."""
    monkeypatch.setattr("exchange_simulation.launching.launch.broker_watch.SAMPLING_S", 0.0)
    made = object.__new__(BrokerWatch)
    made._next_look_s = 0.0
    made.deepest = {}
    made.slowest_look_s = 0.0
    return made


def test_the_greatest_depth_of_each_queue_is_recorded(watch: BrokerWatch) -> None:
    watch._probe = ScriptedProbe([{"order": 3, "trade": 1}, {"order": 2, "trade": 5}])  # type: ignore[assignment]
    watch.look()
    watch.look()
    assert watch.deepest == {"order": 3, "trade": 5}


def test_the_time_of_the_slowest_answer_is_recorded_and_a_late_one_is_named(
    watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch._probe = ScriptedProbe([{}, {}, {}])  # type: ignore[assignment]
    clock = iter([10.0, 10.0, 10.01, 11.0, 11.0, 14.0, 15.0, 15.0, 15.02])  # three readings a look
    monkeypatch.setattr(broker_watch, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    for _ in range(3):
        watch.look()
    assert watch.slowest_look_s == 3.0
    assert pause_words({"slowest_look_s": watch.slowest_look_s}).startswith(
        "the broker answered a look at its queues after 3.0 s"
    )
    assert pause_words({"slowest_look_s": 0.02}) == ""


@pytest.mark.parametrize("failure", [PeerGone("the broker went away"), RuntimeError("pika has no channel")])
def test_a_failed_look_ends_the_looks_but_not_the_run(watch: BrokerWatch, failure: Exception) -> None:
    """`last_look` has the error."""
    watch._probe = probe = ScriptedProbe([{"order": 3}], failure=failure)  # type: ignore[assignment]
    for _ in range(4):
        watch.look()
    assert watch.deepest == {"order": 3}
    assert probe.looks == 2
    assert str(failure) in str(watch.last_look)


def test_a_run_that_did_not_begin_deletes_no_queue(watch: BrokerWatch) -> None:
    """A second run of the same name is refused, as long as the first one goes on."""
    watch._probe = probe = ScriptedProbe([])  # type: ignore[assignment]
    watch._server = None
    watch._has_begun = False
    watch.close()
    assert probe.calls == ["close"]
    watch.clock_starts()
    watch.close()
    assert probe.calls == ["close", "take_down", "close"]


def test_queues_that_cannot_be_deleted_do_not_fail_the_run(
    watch: BrokerWatch, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("the channel is closed")

    watch._probe = probe = ScriptedProbe([])  # type: ignore[assignment]
    monkeypatch.setattr(probe, "take_down", fail)
    watch._server = None
    watch._has_begun = True
    watch.close()
    assert "the run's queues may be left at the broker: RuntimeError: the channel is closed" in capsys.readouterr().err
    watch._server = SimpleNamespace()  # type: ignore[assignment]
    watch.close()
    assert capsys.readouterr().err == "", "a private server is gone after the run, with all its queues"


def test_only_a_broker_on_this_host_is_found_by_its_port(watch: BrokerWatch) -> None:
    watch._server = None
    with socket.create_server(("127.0.0.1", 0)) as broker:
        port = broker.getsockname()[1]
        watch._url = f"amqp://guest@localhost:{port}/"
        assert watch.pids == [os.getpid()]
        watch._url = f"amqp://guest@10.0.0.1:{port}/"
        assert watch.pids == []
    watch._url = f"amqp://guest@localhost:{port}/"
    assert watch.pids == []


def test_a_broker_in_a_container_of_this_host_is_hidden(watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its CPU time cannot be told from noise, so the share of others is unknown."""
    watch._server = None
    with socket.create_server(("127.0.0.1", 0)) as forwarder:
        watch._url = f"amqp://guest@localhost:{forwarder.getsockname()[1]}/"
        assert not watch.is_hidden
        monkeypatch.setattr(broker_watch, "FORWARDERS", {psutil.Process().name()})
        assert watch.is_hidden


@pytest.mark.parametrize(
    ("host", "nic", "in_a_container", "is_hidden"),
    [
        ("172.17.0.2", "docker0", False, True),
        ("172.17.0.1", "eth0", False, True),
        ("172.17.0.2", "eth0", False, False),
        ("172.17.0.2", "eth0", True, True),
        ("10.0.0.1", "docker0", True, False),
    ],
)
def test_a_broker_whose_address_may_be_of_this_host_is_hidden(
    host: str, nic: str, in_a_container: bool, is_hidden: bool, watch: BrokerWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = SimpleNamespace(family=socket.AF_INET, address="172.17.0.1", netmask="255.255.0.0")
    monkeypatch.setattr("psutil.net_if_addrs", lambda: {nic: [mine]})
    monkeypatch.setattr(broker_watch, "_is_bridge", lambda nic: nic == "docker0")
    monkeypatch.setattr(broker_watch, "sees_every_process", lambda: not in_a_container)
    watch._server = None
    watch._url = f"amqp://guest@{host}:1/"
    assert watch.is_hidden == is_hidden
