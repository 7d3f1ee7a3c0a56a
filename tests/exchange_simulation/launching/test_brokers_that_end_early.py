"""A server that ends while it starts is nobody's mistake: exit code 1 and what happened, from every command."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from tests.exchange_command import exchange_in_process

SERVERS = {
    "amqp": "EXCHANGE_RABBITMQ_SERVER",
    "nats": "EXCHANGE_NATS_SERVER",
    "redis": "EXCHANGE_REDIS_SERVER",
}
"""By transport, the variable with the program of its server."""
ANSWERS = {
    "nats": b'INFO {"version": "1"}\r\n',
    "redis": b"%1\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n",
}
"""What a server sends to somebody who asks whether it is ready."""
ENDS_AFTER_ITS_ANSWER = """\
    #!{python} -S
    import os, re, signal, socket, sys
    port = re.search(r'(?:listen: "[^"]*:|port )([0-9]+)', open(sys.argv[-1]).read())[1]
    with socket.create_server(("127.0.0.1", int(port))) as listener:
        asker, _ = listener.accept()
        if "redis" in sys.argv[-1]:
            asker.recv(4096)
        asker.sendall({answer})
        asker.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)
    """
RUN = ("run", "--no-page")
BENCH = ("bench", "de-spsc", "--sizes", "8", "--repeats", "1", "--count", "100")
COMPARE = ("compare", "--transports", "amqp,tcp", "--rates", "500", "--seconds", "0.1", "--repeats", "1", "--no-spark")
CAPACITY = ("capacity", "--slo", "p99 <= 1ms")


@pytest.fixture
def killed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program in the place of every server, which is killed as soon as it has started."""
    program = program_at(tmp_path / "server", "#!/bin/sh\nkill -KILL $$\n")
    for variable in SERVERS.values():
        monkeypatch.setenv(variable, str(program))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def program_at(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.usefixtures("killed_at_once", "no_standing_broker")
@pytest.mark.parametrize("transport", SERVERS)
@pytest.mark.parametrize("words", [RUN, BENCH, CAPACITY], ids=["run", "bench", "capacity"])
def test_a_server_that_is_killed_while_it_starts_is_exit_code_1(
    transport: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    results = tmp_path / "results"
    refused = exchange_in_process(*words, "--transport", transport, "--results", results)
    assert refused.code == 1, refused.err
    assert "was killed by SIGKILL while it started" in refused.err
    assert list(results.glob("*/*")) == []


@pytest.mark.usefixtures("no_standing_broker")
@pytest.mark.parametrize("transport", ANSWERS)
@pytest.mark.parametrize("words", [RUN, BENCH, CAPACITY], ids=["run", "bench", "capacity"])
def test_a_server_that_ends_before_the_others_are_ready_is_exit_code_1(
    transport: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers, and is killed before anybody else has connected. It was exit code 2."""
    text = textwrap.dedent(ENDS_AFTER_ITS_ANSWER).format(python=sys.executable, answer=ANSWERS[transport])
    monkeypatch.setenv(SERVERS[transport], str(program_at(tmp_path / "server", text)))
    results = tmp_path / "results"
    refused = exchange_in_process(*words, "--transport", transport, "--results", results)
    assert refused.code == 1, refused.err
    assert "ended while the others started" in refused.err
    assert list(results.glob("*/*")) == []


@pytest.mark.usefixtures("killed_at_once", "no_standing_broker")
def test_a_comparison_whose_broker_is_killed_ends_with_exit_code_1(tmp_path: Path) -> None:
    refused = exchange_in_process(*COMPARE, "--results", tmp_path / "results")
    assert refused.code == 1, refused.err


@pytest.mark.usefixtures("killed_at_once", "no_standing_broker")
def test_a_fault_matrix_skips_a_cell_whose_broker_is_killed(tmp_path: Path) -> None:
    words = ("--transports", "amqp", "--delivery", "lossy", "--faults", "engine-kill")
    done = exchange_in_process("faults", *words, "--quick", "--results", tmp_path / "results")
    assert done.code == 1, done.err
    assert "RabbitMQ was killed by SIGKILL while it started" in done.err


@pytest.mark.usefixtures("killed_at_once", "no_standing_broker")
def test_a_standing_broker_that_is_killed_while_it_starts_is_exit_code_1() -> None:
    refused = exchange_in_process("broker", "start")
    assert refused.code == 1
    assert "RabbitMQ was killed by SIGKILL while it started" in refused.err
