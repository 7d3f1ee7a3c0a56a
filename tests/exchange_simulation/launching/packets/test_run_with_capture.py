"""`exchange run --capture`: the kernel's counters of a run, and tcpdump's counts."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.launch.launcher import _capture
from exchange_simulation.launching.launch.places import Places
from exchange_simulation.launching.packets.capture import FILE, ports_of
from exchange_simulation.launching.packets.pcap import compare_with_counters
from exchange_simulation.reports.run.terminal import capture_sentences
from tests.exchange_command import VALID_STATUSES, run_exchange
from transports.declaration import RunningBroker

SAID = {"captured": 9, "received": 18, "dropped": 0}


@pytest.mark.usefixtures("pcap")
def test_a_captured_run_s_counters_are_what_tcpdump_saw(tmp_path: Path) -> None:
    finished = run_exchange(
        tmp_path, "--transport", "tcp", "--rate", 4000, "--orders", 4000, "--capture", "--name", "it"
    )
    capture = finished.record["capture"]
    assert finished.record["status"] in VALID_STATUSES
    assert (tmp_path / "it" / FILE).stat().st_size > 10_000
    assert [(each["from"], each["to"]) for each in capture["directions"]] == [
        ("gateway", "engine"),
        ("engine", "gateway"),
    ]
    assert (
        max(capture["off_by"].values()) < 0.02
    )  # of a short run: frames before and after the counters' span are a larger share
    assert capture["dropped"] == 0
    assert capture["problem"] is None


def test_an_unreadable_capture_is_a_sentence_in_the_record(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no capture at all, but long enough")
    capture = compare_with_counters({"sockets": []}, tmp_path / FILE, SAID)
    assert capture["directions"] == []
    assert [line.partition(":")[0] for line in capture_sentences(capture)] == ["the capture cannot be read"]


def test_packets_that_tcpdump_lost_are_told(tmp_path: Path) -> None:
    capture = compare_with_counters({"sockets": []}, tmp_path / "none", {**SAID, "dropped": 1_234})
    assert "tcpdump lost 1,234 packets" in "\n".join(capture_sentences(capture))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("amqp://guest:secret@localhost", "--capture needs the port in amqp://guest:***@localhost"),
        ("amqp://guest@192.0.2.1:5672", "sees this host's loopback, where no packet of amqp://guest@192.0.2.1:5672 is"),
    ],
)
def test_a_capture_that_would_see_no_packet_is_refused(url: str, why: str, tmp_path: Path) -> None:
    settings = RunSettings(transport=url, capture=True)
    places = Places({1: {1: url}}, {1: url}, RunningBroker(url, {}))
    with pytest.raises(UserError, match=re.escape(why)):
        _capture(settings, places, tmp_path, None, 0, contextlib.ExitStack())


@pytest.mark.parametrize(
    ("url", "ports"),
    [
        ("tcp://127.0.0.1:4711", [4711]),
        ("zeromq://127.0.0.1:4711?topology=simplex&back=4712", [4711, 4712]),
        ("amqp://user@[::1]:5672/%2F", [5672]),
    ],
)
def test_the_capture_is_of_the_ports_between_gateway_and_engine(url: str, ports: list[int]) -> None:
    assert ports_of(url) == ports
