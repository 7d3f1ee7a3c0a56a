"""A node leaves no process and no file, for every way to end it. cli/test_broker.py tests `exchange broker stop`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.broker import family, files_others_may_touch, is_gone, need_rabbitmq
from tests.machine import PATIENCE_S, until
from transports.declaration import ServerPlace
from transports.rabbitmq import Node, RabbitMqError, private_node

START_A_NODE = """
import sys, time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from transports.rabbitmq import Node
print(Node.start(Path(sys.argv[1])).pid, flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def running(*words: str | Path, **of_popen: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end of the context, also if the test fails in it."""
    with subprocess.Popen(words, **of_popen) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until_gone(processes: list[psutil.Process]) -> None:
    for process in processes:
        until(lambda process=process: is_gone(process), f"the end of {process}")


def test_a_node_ends_if_its_starter_is_killed(tmp_path: Path) -> None:
    need_rabbitmq()
    with running(sys.executable, "-c", START_A_NODE, tmp_path / "node", stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        processes = family(pid)
        starter.kill()
        wait_until_gone(processes)


@pytest.mark.long
def test_a_node_joins_a_process_group_and_ends_with_the_group(tmp_path: Path) -> None:
    need_rabbitmq()
    with running("sleep", "600", process_group=0) as leader:
        node = Node.start(tmp_path / "node", process_group=leader.pid)
        assert os.getpgid(node.pid) == leader.pid
        processes = family(node.pid)
        os.killpg(leader.pid, signal.SIGTERM)
    assert node.process.wait(timeout=PATIENCE_S) == -signal.SIGTERM
    wait_until_gone(processes)
    node.stop()
    assert not (tmp_path / "node").exists()


@pytest.mark.long
def test_a_restarted_node_keeps_folder_and_address_until_stop(tmp_path: Path) -> None:
    need_rabbitmq()
    with private_node(tmp_path / "node", where=ServerPlace(host="127.0.0.2")) as first:
        second = first.restart()
        assert not is_gone(psutil.Process(second.pid))
        assert second.url == first.url
        assert second.password == first.password
        assert second.folder == first.folder
        assert files_others_may_touch(second.folder) == []
        assert second.pid != first.pid
        processes = family(second.pid)
        second.stop()
        assert [process for process in processes if not is_gone(process)] == []
        assert not second.folder.exists()
        with pytest.raises(RabbitMqError, match="cannot use RabbitMQ's folder"):
            second.restart()


@pytest.mark.long
def test_a_restarted_node_ends_if_its_starter_is_killed(tmp_path: Path) -> None:
    need_rabbitmq()
    start_and_restart = START_A_NODE.replace(".pid", ".restart().pid")
    with running(sys.executable, "-c", start_and_restart, tmp_path / "node", stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        processes = family(int(starter.stdout.readline()))
        starter.kill()
        wait_until_gone(processes)
