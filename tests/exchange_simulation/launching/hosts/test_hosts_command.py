"""exchange hosts check: each host with its facts, or with what keeps it from taking part."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation.measuring import run
from tests.exchange_command import exchange, exchange_in_process
from tests.exchange_simulation.launching.hosts.conftest import WriteHosts, table

HERE = "[reporter]\naddress = '127.0.0.1'\n"


def test_hosts_that_can_take_part_are_shown_with_their_facts(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(table("engine", "env", "127.0.0.1") + table("gateway.2", "env", "127.0.0.1") + HERE)
    finished = exchange("hosts", "check", path, "--pairs", 2, COLUMNS="160")
    assert finished.code == 0, finished.err
    _head, elsewhere, here = finished.out.splitlines()
    assert elsewhere.startswith("engine, gateway.2 ")
    assert elsewhere.rstrip().endswith(" env")
    assert here.startswith("reporter ")
    assert here.rstrip().endswith(" this host")


def test_a_host_that_cannot_take_part_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(table("gateway", "false", "127.0.0.1") + table("engine", "env", "192.0.2.1") + HERE)
    finished = exchange("hosts", "check", path, "--json")
    assert finished.code == 1
    gateway, engine, reporter = finished.record["hosts"]
    assert "the host false cannot be reached, or has no exchange" in gateway["problems"][0]
    assert "the host env cannot listen on 192.0.2.1" in engine["problems"][0]
    assert engine["facts"]["cores"] == reporter["facts"]["cores"]
    assert engine["clock_bound_us"] > 0
    assert (reporter["problems"], reporter["clock_bound_us"]) == ([], 0)


DOCKER_S_WORDS = (
    "docker: Error: permission denied on \\033[31m/var/run\\377\\n\\nRun 'docker exec --help' for more information"
)


def test_a_host_s_command_that_fails_is_quoted_whole_and_escaped(tmp_path: Path) -> None:
    """Regression: only docker's last line was quoted, which names its --help alone."""
    docker = tmp_path / "docker"
    docker.write_text(f"""#!/bin/sh\nprintf "{DOCKER_S_WORDS}\\n" >&2\nexit 125\n""")
    docker.chmod(0o755)
    path = tmp_path / "hosts.toml"
    path.write_text(table("engine", f"{docker} exec c3", "127.0.0.1") + HERE)
    finished = exchange("hosts", "check", path, "--json")
    assert finished.code == 1
    engine, _reporter = finished.record["hosts"]
    assert engine["problems"][0].endswith(
        "`exchange --version` there ended with exit code 125: docker: Error: permission denied on \\x1b[31m/var/run"
        "\\xff | Run 'docker exec --help' for more information"
    )


@pytest.mark.parametrize(
    ("text", "words", "mistake"),
    [
        ("[engine]\nbefore = 'env'\n", (), "[engine] has no address, and the gateway, on this host, connects to it"),
        (HERE + "[gateway.2]\nbefore = 'env'\n", (), "has a table for gateway.2, and this run has none"),
        (
            HERE + "[gateway.2]\nbefore = 'env'\n",
            ("--pairs", 2),
            "[engine.2] has no address, and the gateway.2, on",
        ),
        ("[broker]\naddress = '127.0.0.1'\n", (), "has a table [broker], and zeromq has no broker"),
        (HERE, ("--transport", "shm"), "shm cannot leave a host"),
    ],
)
def test_the_check_refuses_the_file_that_a_run_refuses(
    text: str, words: tuple[object, ...], mistake: str, tmp_path: Path
) -> None:
    """Regression: the check passed a file without `address`, which the run then refused."""
    path = tmp_path / "hosts.toml"
    path.write_text(text)
    checked = exchange_in_process("hosts", "check", path, *words)
    run = exchange_in_process("run", "--hosts", path, "--insecure", "--results", tmp_path / "results", *words)
    assert (checked.code, run.code) == (2, 2)
    assert mistake in checked.err
    assert mistake in run.err


def test_an_address_that_this_host_lacks_is_found_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text("[reporter]\naddress = '192.0.2.1'\n")
    finished = exchange_in_process("hosts", "check", path)
    assert finished.code == 1
    assert "[reporter]: cannot listen on 192.0.2.1" in finished.err
    assert "other hosts reach the reporter, and nothing is encrypted: give the run --secure DIR" in finished.err


def test_the_file_of_a_benchmark_is_not_held_to_a_run(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text("[consumer]\naddress = '127.0.0.1'\n[broker]\naddress = '127.0.0.1'\n")
    finished = exchange_in_process("hosts", "check", path)
    assert finished.code == 0, finished.err


def test_python_runs_over_hosts_too(namespaces: WriteHosts, tmp_path: Path) -> None:
    outcome = run(
        hosts=str(namespaces("veth")), insecure=True, rate=1000, orders=300, results=tmp_path / "r", page=False
    )
    assert [host["components"] for host in outcome.record["hosts"]] == [["reporter"], ["engine"], ["gateway"]]
    assert outcome.record["counts"]["orders_received"] == 300
