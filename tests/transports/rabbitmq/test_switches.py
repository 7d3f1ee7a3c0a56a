"""RabbitMQ's own switches: what a node is started with, what Erlang then says of itself, and bad values."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.broker import need_rabbitmq
from tests.machine import until
from transports.amqp.broker import PrivateRabbitMq, RabbitMq
from transports.declaration import ServerPlace
from transports.rabbitmq import BadNodeSetting, NodeSettings
from transports.rabbitmq.boot import NodeFolder

SWITCHES = {"schedulers": "1", "busy_wait": "short", "allocator": "aobf"}
FLAGS = "+S 1:1 +sbwt short +sbwtdcpu short +sbwtdio short +MBas aobf +MHas aobf"


def test_a_node_is_started_with_the_switches_of_its_url(tmp_path: Path) -> None:
    need_rabbitmq()
    broker = RabbitMq().with_options(SWITCHES)
    with broker.start(tmp_path / "node", None, nodelay=True, where=ServerPlace()) as running:
        server = running.server
        assert isinstance(server, PrivateRabbitMq)
        settings = server.facts()["settings"]
        assert (settings["schedulers"], settings["busy_wait"], settings["allocator"]) == (1, "short", "aobf")
        words = " ".join(psutil.Process(server.node.pid).cmdline())
        assert words.index("MBas ageffcbf") < words.index("MBas aobf")
        answer = tmp_path / "schedulers"
        server.node.evaluate(f'file:write_file("{answer}", integer_to_list(erlang:system_info(schedulers)) ++ "\\n")')
        until(lambda: answer.exists() and answer.read_text().endswith("\n"), "the node's answer")
        assert answer.read_text() == "1\n"


def test_a_restarted_node_has_the_same_switches(tmp_path: Path) -> None:
    settings = NodeSettings(schedulers=1, busy_wait="short", allocator="aobf")
    made = NodeFolder.make(tmp_path / "node", settings, "127.0.0.1", 1, "me", outlives_us=False)
    left = NodeFolder.left_at(tmp_path / "node")
    assert made == left
    assert left.environment["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"].endswith(FLAGS)


def test_a_node_without_switches_is_left_to_rabbitmq() -> None:
    assert NodeSettings().erlang_flags == ""


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        ({"schedulers": 0}, "a number, 1..1024"),
        ({"busy_wait": "sometimes"}, "none, very_short, short"),
        ({"allocator": "best"}, "ageffcbf, ageffcaoff"),
    ],
)
def test_a_switch_that_erlang_does_not_have_is_refused(setting: dict[str, object], allowed: str) -> None:
    with pytest.raises(BadNodeSetting, match=allowed):
        NodeSettings(**setting)  # type: ignore[arg-type]
