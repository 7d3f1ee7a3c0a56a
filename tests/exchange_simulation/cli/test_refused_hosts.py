"""Commands that cannot take --hosts say why, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange_command import exchange_in_process


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "--transports", "zeromq,memory", "--rates", "1000"),
        ("sweep", "--vary", "packing=1,2", "--transports", "memory"),
        ("nagle", "--transports", "tcp", "--rates", "1000", "--network", "veth"),
    ],
)
def test_studies_of_many_runs_check_their_hosts_before_the_first(words: tuple[str, ...], tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text("[engine]\naddress = '127.0.0.1'\n")
    finished = exchange_in_process(*words, "--hosts", hosts, "--dry-run")
    assert finished.code == 2
    assert f"--hosts is {hosts}; " in finished.err


def test_a_view_by_spark_needs_a_reporter_on_this_host(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text("[reporter]\nbefore = 'ssh a'\naddress = 'a'\n[engine]\naddress = 'b'\n")
    finished = exchange_in_process("run", "--hosts", hosts, "--insecure", "--live-spark")
    assert finished.code == 2
    assert "--live-spark reads the spool of the reporter while the run goes on, and that is on ssh a" in finished.err


@pytest.mark.parametrize("option", ["--hosts", "--network"])
def test_a_suite_finds_a_mistake_in_the_options_of_all_before_its_first_benchmark(option: str, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text("[engin]\naddress = '127.0.0.1'\n")
    value = hosts if option == "--hosts" else "nowhere"
    finished = exchange_in_process("bench", "suite", "--transport", "tcp", option, value, "--results", tmp_path)
    assert finished.code == 2
    assert str(value) in finished.err
    assert "benchmark 1 of" not in finished.err
