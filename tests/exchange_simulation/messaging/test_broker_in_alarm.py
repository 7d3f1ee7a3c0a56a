"""A broker in alarm takes no messages: a benchmark over it names the alarm, as a run does."""

from __future__ import annotations

from multiprocessing import Pipe
from pathlib import Path
from typing import cast

import pytest

from exchange_simulation.messaging.session import Session, Silence
from tests.broker import need_rabbitmq
from tests.exchange_simulation.messaging.bench_commands import bench
from transports.amqp.address import PASSWORD
from transports.base import Link
from transports.rabbitmq import NodeSettings, private_node

ALARM = ": the broker takes no messages, it is in alarm for want of memory or disk"


def test_a_benchmark_over_a_broker_in_alarm_names_the_alarm(tmp_path: Path) -> None:
    """It said that no message came through."""
    need_rabbitmq()
    with private_node(tmp_path / "node", settings=NodeSettings(memory_mark=0)) as node:
        command = f"de-spsc --sizes 1 --count 10 --repeats 1 --transport {node.url}"
        outcome = bench(tmp_path / "results", command, **{PASSWORD: node.password})
    assert outcome["code"] != 0
    assert f"within 10 s{ALARM}" in outcome["err"]


class AlarmedLink:
    """A link whose broker is in alarm."""

    def excuse(self) -> str:
        return ALARM


class QuietLink:
    """A link that knows no reason for a silence."""

    def excuse(self) -> str:
        return ""

    def wait(self, _until_ns: int, *, readable: bool, writable: bool) -> None:
        """Nothing ever comes."""


def test_a_role_that_gives_up_names_the_alarm_of_any_of_its_links() -> None:
    links = [cast(Link, QuietLink()), cast(Link, AlarmedLink())]
    session = Session(links, Pipe()[0], patience_s=-1.0)
    session.wait(links[0], "nothing could be sent")  # it looks once more after its waiting time
    with pytest.raises(Silence, match=f"nothing could be sent for -1 s{ALARM}"):
        session.wait(links[0], "nothing could be sent")
