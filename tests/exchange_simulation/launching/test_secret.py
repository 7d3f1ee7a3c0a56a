"""A run's secret: strangers who lack it are refused and counted, and it stands in nothing that others may read.

One run meets all strangers. Some speak no ZeroMQ; some send valid orders; one knows the run's name, which stands in
every argv: statistics of that one would enter the percentiles.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from exchange.messages import Order, encode
from exchange_simulation.launching.services import TOKEN
from tests.exchange_command import VALID_STATUSES, FinishedCommand, Running, listening_port
from tests.exchange_simulation.launching.strangers import speak_garbage
from tests.machine import until

pytestmark = pytest.mark.xdist_group("secret")

COMPONENTS = ("gateway", "engine", "reporter")
SPEAKING = (zmq.PAIR, zmq.DEALER, zmq.REQ)
KINDS = (*SPEAKING, zmq.PUSH, zmq.SUB)


@dataclass(frozen=True)
class Visited:
    """A finished run to which strangers connected."""

    folder: Path
    finished: FinishedCommand
    secrets: set[str]
    arguments: str
    """The command lines of all its processes."""
    verdict: int
    """libzmq's event for a stranger that knows the run's name."""
    received: list[int]
    """For each stranger that can receive: 0 if it received nothing."""


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    results = tmp_path_factory.mktemp("visited") / "results"
    run = Running(results, "--rate", 1000, "--duration", 5, "--record").wait_until_under_way()
    with contextlib.ExitStack() as closing:
        closing.callback(run.clear_up)
        context = closing.enter_context(zmq.Context())
        closing.callback(context.destroy, linger=0)
        secrets = {run.component(role).environ()[TOKEN] for role in COMPONENTS}
        arguments = " ".join(word for process in run.family() for word in process.cmdline())
        strangers = visit(listening_port(run.component("engine")), context)
        verdict = introduce(listening_port(run.component("reporter")), context, run.folder.name)
        finished = run.finish()
        received = [stranger.poll(0, zmq.POLLIN) for stranger in strangers if stranger.type != zmq.PUSH]
        yield Visited(run.folder, finished, secrets, arguments, verdict, received)


def visit(port: int, context: zmq.Context[zmq.Socket[bytes]]) -> list[zmq.Socket[bytes]]:
    """Four who speak no ZeroMQ, and a socket of each kind, some with an order."""
    speak_garbage(port)
    strangers = [context.socket(kind) for kind in KINDS]
    for stranger in strangers:
        stranger.connect(f"tcp://127.0.0.1:{port}")
        if stranger.type in SPEAKING:
            with contextlib.suppress(zmq.Again):  # refused already
                stranger.send(encode(Order(1, 1, 500, 10)), zmq.DONTWAIT)
    return strangers


def introduce(port: int, context: zmq.Context[zmq.Socket[bytes]], name: str) -> int:
    """Return the event that ends the handshake of a client that knows the run's name."""
    both = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    with context.socket(zmq.DEALER) as informed, informed.get_monitor_socket(both) as told:
        informed.linger = 0
        informed.plain_username = b"exchange"
        informed.plain_password = name.encode()
        informed.connect(f"tcp://127.0.0.1:{port}")
        verdict = until(lambda: told.poll(0) and recv_monitor_message(told)["event"], "a verdict on who knows the name")
        informed.disable_monitor()
    return int(verdict)


def test_strangers_are_refused_and_counted_and_get_no_answer(visited: Visited) -> None:
    record = visited.finished.record
    assert record["status"] in VALID_STATUSES, record["reasons"]
    assert record["counts"]["handshakes_refused"] >= 3 + 4 + 1
    assert record["counts"]["junk_frames"] == 0
    assert visited.received == [0, 0, 0, 0]
    assert visited.folder.name in visited.arguments
    assert visited.verdict == zmq.EVENT_HANDSHAKE_FAILED_AUTH


def test_the_secret_is_in_no_argument_output_or_file_of_a_run(visited: Visited) -> None:
    (secret,) = visited.secrets
    assert len(bytes.fromhex(secret)) == 16
    assert secret not in visited.arguments + visited.finished.out + visited.finished.err
    left = [path for path in visited.folder.rglob("*") if path.is_file()]
    assert {"run.json", "orders.bin", "report.html"} <= {path.name for path in left}
    assert [path for path in left if secret.encode() in path.read_bytes()] == []


def test_only_the_owner_can_read_a_run_s_files(visited: Visited) -> None:
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (visited.folder, *visited.folder.rglob("*"))}
    assert [path for path, mode in modes.items() if mode & 0o077] == []
