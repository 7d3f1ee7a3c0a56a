"""A listener that is open to other hosts, and keys that cannot serve, are refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from exchange.settings import RunSettings
from exchange_simulation.cli.main import main
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.notices import notices_to
from exchange_simulation.launching.transport_checks import check_exposure, check_transport
from exchange_simulation.launching.transport_urls import with_keys


@pytest.mark.parametrize(
    "url",
    [
        "tcp://0.0.0.0:7000",
        "zeromq+tcp://*:7000",
        "tcp://[::]:7000",
        "tcp://hostb:7000",
        "zeromq://eth0:7000",
        "tcp://192.0.2.1:7000?nodelay=off",
    ],
)
def test_who_listens_for_other_hosts_says_how(url: str) -> None:
    with pytest.raises(UserError, match=r"open to other hosts, and nothing is encrypted: give --secure.*--insecure"):
        check_exposure(url, insecure=False)
    heard: list[str] = []
    with notices_to(heard.append):
        check_exposure(with_keys(url, "/keys"), insecure=False)
        assert heard == []
        check_exposure(url, insecure=True)
    assert heard == [f"warning: {url} is open to other hosts, and nothing is encrypted"]


@pytest.mark.parametrize(
    "url",
    [
        "tcp://127.0.0.2:0",
        "tcp://[::1]:7000",
        "zeromq://localhost:1",
        "zeromq+ipc:///tmp/x",
        "amqp://hostb",
        "tcp://nowhere",
    ],
)
def test_a_listener_on_loopback_needs_no_option_insecure(url: str) -> None:
    check_exposure(url, insecure=False)


@pytest.mark.parametrize("role", ["engine", "reporter", "run", "bench role"])
def test_every_command_that_listens_asks(role: str, tmp_path: Path) -> None:
    place = "tcp://0.0.0.0:7000"
    words = {
        "engine": ["--listen", place, "--reporter", "tcp://hostc:7001", "--run", "x"],
        "reporter": ["--listen", place, "--run", "x", "--results", str(tmp_path / "results")],
        "run": ["--transport", place, "--results", str(tmp_path / "results")],
        "bench role": ["consume", "--listen", place, "--run", "x"],
    }
    finished = CliRunner().invoke(main, [*role.split(), *words[role]])
    assert finished.exit_code == 2
    assert f"{place} is open to other hosts" in finished.output, finished.output
    assert not list(tmp_path.iterdir())


def test_a_run_that_listens_for_other_hosts_warns_of_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UserError("that is enough")

    monkeypatch.setattr("exchange_simulation.launching.launch.launcher.launch", refuse)
    words = ["run", "--transport", "tcp://0.0.0.0:7000", "--insecure", "--results", str(tmp_path / "results")]
    finished = CliRunner().invoke(main, words)
    assert "that is enough" in finished.output
    assert finished.output.count("tcp://0.0.0.0:7000 is open to other hosts") == 1


def test_keys_are_refused_before_the_run_where_they_cannot_serve(keys: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"--secure is {keys}; memory has no encryption: use amqp, .*tcp, zeromq"):
        check_transport(RunSettings(transport="memory", secure=str(keys)))
    with pytest.raises(UserError, match=f"{tmp_path}/ca.pem is missing: make keys with: exchange keys DIR"):
        check_transport(RunSettings(secure=str(tmp_path)))
    check_transport(RunSettings(secure=str(keys)))
