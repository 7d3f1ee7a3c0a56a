"""However a node ends, nothing of it is left. `exchange broker stop` has its tests in cli/test_broker.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.broker import family, files_others_may_touch, is_gone, need_rabbitmq
from tests.machine import PATIENCE_S, until
from transports.declaration import Where
from transports.rabbitmq import Node, RabbitMqError, private_node

STARTER = """
import sys, time
from pathlib import Path
from transports.rabbitmq import Node
print(Node.start(Path(sys.argv[1])).pid, flush=True)
time.sleep(600)
"""


def test_a_node_ends_with_its_starter_even_if_that_is_killed(tmp_path: Path) -> None:
    need_rabbitmq()
    with subprocess.Popen([sys.executable, "-c", STARTER, tmp_path / "node"], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        started = family(pid)
        starter.kill()
        for process in started:
            until(lambda process=process: is_gone(process), f"the end of {process}")


@pytest.mark.long
def test_a_node_joins_a_process_group_and_ends_at_once_with_it(tmp_path: Path) -> None:
    need_rabbitmq()
    with subprocess.Popen(["sleep", "600"], process_group=0) as leader:
        node = Node.start(tmp_path / "node", process_group=leader.pid)
        assert os.getpgid(node.pid) == leader.pid
        started = family(node.pid)
        os.killpg(leader.pid, signal.SIGTERM)
    assert node.process.wait(timeout=PATIENCE_S) == -signal.SIGTERM
    for process in started:
        until(lambda process=process: is_gone(process), f"the end of {process}")
    node.stop()
    assert not (tmp_path / "node").exists()


@pytest.mark.long
def test_a_node_starts_again_over_its_folder_and_is_gone_after_stop(tmp_path: Path) -> None:
    need_rabbitmq()
    with private_node(tmp_path / "node", where=Where(host="127.0.0.2")) as first:
        second = first.restart()
        assert is_gone(psutil.Process(second.pid)) is False
        assert (second.url, second.password, second.folder) == (first.url, first.password, first.folder)
        assert files_others_may_touch(second.folder) == []
        assert second.pid != first.pid
        started = family(second.pid)
        second.stop()
        assert [process for process in started if not is_gone(process)] == []
        assert not second.folder.exists()
        with pytest.raises(RabbitMqError, match="cannot use RabbitMQ's folder"):
            second.restart()


@pytest.mark.long
def test_a_node_that_was_started_again_ends_with_us_too(tmp_path: Path) -> None:
    need_rabbitmq()
    again = STARTER.replace(".pid", ".restart().pid")
    with subprocess.Popen([sys.executable, "-c", again, tmp_path / "node"], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        started = family(int(starter.stdout.readline()))
        starter.kill()
        for process in started:
            until(lambda process=process: is_gone(process), f"the end of {process}")
