"""A server that is not installed ends a command before its first run, in a sentence that says how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_checks import check_server
from tests.exchange_command import exchange_in_process

MISSING = "EXCHANGE_NATS_SERVER names /nowhere/nats-server, which is no program"


@pytest.fixture(autouse=True)
def without_nats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command look for the NATS server where none is."""
    monkeypatch.setenv("EXCHANGE_NATS_SERVER", "/nowhere/nats-server")


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "--transports", "zeromq,nats", "--rates", "1000", "--repeats", "2"),
        ("bench", "suite", "--quick", "--transport", "zeromq,nats"),
    ],
    ids=["compare", "bench suite"],
)
def test_a_missing_server_ends_a_command_before_its_first_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    finished = exchange_in_process(*words, "--results", tmp_path)
    assert finished.code == 2
    assert MISSING in finished.err
    assert "run 1 of" not in finished.err
    assert list(tmp_path.iterdir()) == []


def test_a_server_at_an_address_need_not_be_installed_here() -> None:
    check_server("nats://somewhere")
    check_server("zeromq")
    with pytest.raises(UserError, match=MISSING):
        check_server("nats?delivery=durable")
