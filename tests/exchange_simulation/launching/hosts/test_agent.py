"""The agent of a host: ports, clock, files, the other work there; and what it refuses."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.host_agents import HostAgent, HostGone, started_agents
from exchange_simulation.launching.hosts.hosts_file import Host
from exchange_simulation.launching.hosts.lines import LineReader
from exchange_simulation.launching.process_group import ProcessGroup
from tests.exchange_simulation.launching.hosts.conftest import EXCHANGE

HOST = Host(("env",), str(EXCHANGE))


@pytest.fixture
def agent() -> Iterator[HostAgent]:
    with ProcessGroup() as processes, ExitStack() as stack:
        yield started_agents([HOST], processes, stack)[HOST]


def test_a_reserved_port_is_for_nobody_else_until_the_agent_ends(agent: HostAgent) -> None:
    port = agent.reserve("127.0.0.1")
    with socket.socket() as taker, pytest.raises(OSError, match="in use"):
        taker.bind(("127.0.0.1", port))
    agent.close()
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", port))


def test_an_address_of_another_host_is_refused_with_advice(agent: HostAgent) -> None:
    with pytest.raises(
        UserError, match=r"the host env cannot listen on 192\.0\.2\.1: .*; give an address of that host"
    ):
        agent.reserve("192.0.2.1")


def test_a_file_goes_to_the_host_and_comes_back_whole(agent: HostAgent, tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    (tmp_path / "sent").write_bytes(content)
    there = agent.put(tmp_path / "sent", "results/first/spool/000001.jsonl")
    assert Path(there).stat().st_mode & 0o077 == 0, "for its owner alone"
    folder = tmp_path / "first"
    folder.mkdir()
    assert agent.fetch("first", folder) == ["spool/000001.jsonl"]
    assert (folder / "spool" / "000001.jsonl").read_bytes() == content


def test_a_file_that_becomes_shorter_while_it_comes_back_ends_its_agent(
    agent: HostAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sent").write_bytes(bytes(3 << 20))
    file_on_host = Path(agent.put(tmp_path / "sent", "results/first/orders.bin"))
    some_bytes = LineReader.some_bytes
    is_cut_off: list[bool] = []

    def cut_off(reader: LineReader, most: int, patience_s: float) -> bytes:
        if not is_cut_off:  # the agent waits in its first MiB, since a pipe takes less
            os.truncate(file_on_host, 0)
            is_cut_off.append(True)
        return some_bytes(reader, most, patience_s)

    monkeypatch.setattr(LineReader, "some_bytes", cut_off)
    folder = tmp_path / "first"
    folder.mkdir()
    with pytest.raises(HostGone, match=r"first/orders\.bin became shorter while it was sent"):
        agent.fetch("first", folder)
    assert list(folder.iterdir()) == []


def test_files_of_another_run_are_not_fetched(agent: HostAgent, tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(b"other")
    agent.put(tmp_path / "sent", "results/second/orders.bin")
    assert agent.fetch("first", tmp_path / "first") == []


def test_a_path_that_leads_out_of_the_folder_is_refused(agent: HostAgent, tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(b"content")
    with pytest.raises(UserError, match="leads out of the run's folder"):
        agent.put(tmp_path / "sent", "../elsewhere")


def test_the_folder_goes_with_the_agent(agent: HostAgent) -> None:
    assert agent.folder.is_dir()
    agent.close()
    assert not agent.folder.exists()


def test_an_answer_that_was_not_read_is_no_answer_to_the_next_message(
    agent: HostAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("exchange_simulation.launching.hosts.lines.select.select", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.start_noise()
    agent.read_clock()
    assert agent.clock is not None
    assert agent.clock.low_ns <= 0 <= agent.clock.high_ns, "the same clock"


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_other_work_on_a_host_is_measured_there(agent: HostAgent) -> None:
    agent.start_noise()
    noise = agent.stop_noise([os.getpid()])
    assert noise is not None
    assert noise["window_s"] > 0


def test_a_host_that_is_gone_is_not_waited_for_again(agent: HostAgent) -> None:
    process_of_agent(agent).kill()
    for _ in range(2):
        with pytest.raises(HostGone, match="the host env is gone"):
            agent.read_clock()


def process_of_agent(agent: HostAgent) -> psutil.Process:
    """The agent's process, which `env` has become."""
    [process] = [child for child in psutil.Process().children() if "agent" in child.cmdline()]
    return process
