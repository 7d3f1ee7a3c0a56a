"""A server that ends while it starts is nobody's mistake: exit code 1 and what happened, from every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange_command import exchange_in_process

SERVERS = {"amqp": "EXCHANGE_RABBITMQ_SERVER", "nats": "EXCHANGE_NATS_SERVER"}
RUN = ("run", "--no-page")
BENCH = ("bench", "de-spsc", "--sizes", "8", "--repeats", "1", "--count", "100")
COMPARE = ("compare", "--transports", "amqp,tcp", "--rates", "500", "--seconds", "0.1", "--repeats", "1", "--no-spark")
CAPACITY = ("capacity", "--slo", "p99 <= 1ms")


@pytest.fixture
def killed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program in the place of both servers, which is killed as soon as it has started."""
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\nkill -KILL $$\n")
    program.chmod(0o755)
    for variable in SERVERS.values():
        monkeypatch.setenv(variable, str(program))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.usefixtures("killed_at_once", "no_standing_broker")
@pytest.mark.parametrize("transport", SERVERS)
@pytest.mark.parametrize("words", [RUN, BENCH, CAPACITY], ids=["run", "bench", "capacity"])
def test_a_server_that_is_killed_while_it_starts_is_exit_code_1(
    transport: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    results = tmp_path / "results"
    refused = exchange_in_process(*words, "--transport", transport, "--results", results)
    assert refused.code == 1, refused.err
    assert "ended" in refused.err
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
    assert "RabbitMQ ended" in done.err


@pytest.mark.usefixtures("killed_at_once", "no_standing_broker")
def test_a_standing_broker_that_is_killed_while_it_starts_is_exit_code_1() -> None:
    refused = exchange_in_process("broker", "start")
    assert refused.code == 1
    assert "RabbitMQ ended" in refused.err
