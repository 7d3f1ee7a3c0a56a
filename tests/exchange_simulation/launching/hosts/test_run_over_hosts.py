"""Runs whose components are on several hosts: network namespaces, and hosts behind a real sshd."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.broker import need_rabbitmq
from tests.exchange_command import (
    VALID_STATUSES,
    exchange,
    processes_with_scratch,
    run_exchange,
    run_exchange_in_process,
)
from tests.exchange_simulation.launching.hosts.conftest import EXCHANGE, WriteHosts, table
from tests.machine import until
from tests.ssh_server import SshServer

SMALL = ("--rate", 1000, "--orders", 500, "--seed", 7)
REPORTER_HERE = "[reporter]\naddress = '127.0.0.1'\n"
DELAYED = ("--rate", 500, "--orders", 1000, "--seed", 7)


def test_three_hosts_give_the_answers_of_one(namespaces: WriteHosts, tmp_path: Path) -> None:
    hosts = namespaces("veth")
    finished = run_exchange(tmp_path, "--hosts", hosts, "--insecure", "--record", *SMALL)
    assert finished.code == 0, finished.err
    here = run_exchange_in_process(tmp_path, *SMALL).record
    record = finished.record
    assert record["status"] in VALID_STATUSES
    assert record["checksums"] == here["checksums"]
    assert record["counts"]["statistics_received"] == record["counts"]["statistics_sent"]
    [folder] = [path for path in tmp_path.glob("*/run.json") if json.loads(path.read_bytes())["settings"]["hosts"]]
    assert (folder.parent / "orders.bin").stat().st_size == 5000, "the gateway's stream was fetched"
    assert list(folder.parent.glob("spool/*.jsonl")), "the reporter's spool was fetched"


def test_each_host_is_in_the_record_with_its_facts(namespaces: WriteHosts, tmp_path: Path) -> None:
    record = run_exchange(tmp_path, "--hosts", namespaces("veth"), "--insecure", *SMALL).record
    by_component = {component: host for host in record["hosts"] for component in host["components"]}
    assert by_component.keys() == {"gateway", "engine", "reporter"}
    for host in by_component.values():
        assert host["host"].startswith("nsenter ")
        assert host["facts"]["kernel"] == record["host"]["kernel"]
        assert host["facts"]["cpu"] == record["host"]["cpu"]
        assert host["versions"]["exchange"] == record["versions"]["exchange"]
        assert abs(host["clock_offset_us"]) <= host["clock_bound_us"], "all namespaces have one clock"
    assert by_component["engine"]["address"] == {"engine": "10.77.1.2"}


def test_the_counts_of_pairs_on_hosts_add_up_to_those_of_the_run(namespaces: WriteHosts, tmp_path: Path) -> None:
    finished = run_exchange(tmp_path, "--hosts", namespaces("veth"), "--insecure", "--pairs", 3, *SMALL)
    assert finished.code == 0, finished.err
    record = finished.record
    for name in ("orders_sent", "orders_received", "orders_answered", "answers_sent", "answers_received", "trades"):
        assert record["counts"][name] == sum(pair["counts"][name] for pair in record["pairs"])
    assert record["counts"]["orders_received"] == 3 * 500


def p50_us(record: dict[str, Any]) -> float:
    return float(record["completion_us"]["due"]["p50"])


def test_hosts_with_a_delay_between_them_complete_as_one_host_with_this_delay(
    namespaces: WriteHosts, tmp_path: Path
) -> None:
    hosts = run_exchange(tmp_path, "--hosts", namespaces("wan1"), "--insecure", *DELAYED)
    emulated = run_exchange(tmp_path, "--network", "wan1", *DELAYED)
    assert hosts.code == emulated.code == 0, hosts.err + emulated.err
    assert p50_us(hosts.record) > 2000, "an order and its answer each wait for 1 ms"
    assert p50_us(hosts.record) == pytest.approx(p50_us(emulated.record), rel=0.2)


def test_times_one_way_have_the_bound_of_the_clocks(namespaces: WriteHosts, tmp_path: Path) -> None:
    words = ("--hosts", namespaces("wan1"), "--insecure", "--sampling-interval", 10, *DELAYED)
    record = run_exchange(tmp_path, *words).record
    times = record["one_way_us"]
    assert times["count"] >= 90
    engine = next(host for host in record["hosts"] if host["components"] == ["engine"])
    gateway = next(host for host in record["hosts"] if host["components"] == ["gateway"])
    assert times["bound"] == pytest.approx(engine["clock_bound_us"] + gateway["clock_bound_us"], abs=0.01)
    for direction in ("to_engine", "back"):
        assert times[direction]["p50"] + times["bound"] > 1000, "each way has a delay of 1 ms"
        assert times[direction]["p50"] < p50_us(record)


def test_a_run_over_ssh_has_the_answers_of_one_host(behind_ssh: Path, sshd: SshServer, tmp_path: Path) -> None:
    finished = run_exchange(tmp_path / "r", "--hosts", behind_ssh, *SMALL)
    assert finished.code == 0, finished.err
    assert finished.record["checksums"] == run_exchange_in_process(tmp_path, *SMALL).record["checksums"]
    elsewhere, here = sorted(finished.record["hosts"], key=lambda host: host["host"] == "this host")
    assert elsewhere["components"] == ["reporter", "engine"]
    assert elsewhere["host"] == sshd.command_prefix
    assert here["components"] == ["gateway"]
    assert len(list((tmp_path / "r").glob("*/spool/*.jsonl"))) > 0
    assert finished.record["counts"]["statistics_received"] > 0


@pytest.mark.parametrize("transport", ["tcp", pytest.param("zeromq", marks=pytest.mark.long)])
def test_keys_are_copied_to_each_host(transport: str, namespaces: WriteHosts, keys: Path, tmp_path: Path) -> None:
    words = ("--hosts", namespaces("veth"), "--transport", transport, "--secure", keys, "-v", *SMALL)
    finished = exchange("run", "--no-page", "--results", tmp_path / "results", *words)
    assert finished.code == 0, finished.err
    [engine] = [line for line in finished.err.splitlines() if line.startswith("starting engine:")]
    assert re.search(r" --secure /\S*/exchange-\S*/keys ", engine)
    assert str(keys) not in engine, "no path of this host"


def test_no_transport_without_ports_leaves_a_host(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(table("engine", "env", "127.0.0.1") + REPORTER_HERE)
    finished = run_exchange(tmp_path / "r", "--hosts", path, "--transport", "shm", *SMALL)
    assert finished.code == 2
    assert "shm cannot leave a host: use " in finished.err


def test_a_tape_is_copied_to_the_gateways_host(namespaces: WriteHosts, tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    assert exchange("tape", "--orders", 500, "--seed", 7, "--output", tape).code == 0
    finished = run_exchange(
        tmp_path / "r", "--hosts", namespaces("veth"), "--insecure", "--tape", tape, "--rate", 1000, "--orders", 500
    )
    assert finished.code == 0, finished.err
    assert finished.record["checksums"] == run_exchange_in_process(tmp_path / "h", *SMALL).record["checksums"]


@pytest.mark.parametrize("transport", ["nats", "amqp", pytest.param("redis", marks=pytest.mark.long)])
def test_a_broker_is_started_on_its_host_and_ends_with_the_run(transport: str, sshd: SshServer, tmp_path: Path) -> None:
    if transport == "amqp":
        need_rabbitmq()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    elsewhere = f"{sshd.command_prefix} env TMPDIR={scratch}"
    path = tmp_path / "hosts.toml"
    path.write_text(table("broker", elsewhere, "127.0.0.1") + table("engine", elsewhere, "127.0.0.1"))
    finished = run_exchange(tmp_path / "r", "--hosts", path, "--transport", transport, *SMALL)
    assert finished.code == 0, finished.err
    assert finished.record["checksums"] == run_exchange_in_process(tmp_path / "h", *SMALL).record["checksums"]
    [host] = [host for host in finished.record["hosts"] if "broker" in host["components"]]
    assert host["host"] == elsewhere
    until(lambda: not processes_with_scratch(scratch), "the end of the broker")
    assert list(scratch.glob("exchange-*")) == []


@pytest.mark.parametrize("transport", ["nats", pytest.param("amqp", marks=pytest.mark.long)])
def test_a_broker_of_this_host_listens_where_the_others_find_it(
    transport: str, sshd: SshServer, tmp_path: Path
) -> None:
    if transport == "amqp":
        need_rabbitmq()
    path = tmp_path / "hosts.toml"
    path.write_text(table("engine", sshd.command_prefix, "127.0.0.1") + "[broker]\naddress = '127.0.0.2'\n")
    finished = run_exchange(tmp_path / "r", "--hosts", path, "--transport", transport, *SMALL)
    assert finished.code == 0, finished.err
    assert "127.0.0.2:" in finished.record["settings"]["url"]


def test_a_broker_that_cannot_start_on_its_host_is_named(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(table("broker", "env", "192.0.2.1"))
    finished = run_exchange(tmp_path / "r", "--hosts", path, "--transport", "nats", "--insecure", *SMALL)
    assert finished.code == 2
    assert "the host env has no broker: " in finished.err
    assert not list((tmp_path / "r").glob("*")), "no folder is left"


def test_several_gateways_reach_one_engine_on_another_host(namespaces: WriteHosts, tmp_path: Path) -> None:
    words = ("--hosts", namespaces("veth"), "--insecure", "--gateways", 2, "--record", *SMALL)
    finished = run_exchange(tmp_path, *words)
    assert finished.code == 0, finished.err
    [folder] = tmp_path.glob("*/run.json")
    names = {path.name for path in folder.parent.glob("*.bin")}
    assert names == {"orders.bin", "answers.bin", "orders.2.bin", "answers.2.bin", "input.bin"}


def test_market_data_reaches_subscribers_on_another_host(namespaces: WriteHosts, tmp_path: Path) -> None:
    hosts = namespaces("veth")
    lines = hosts.read_text()
    gateway = lines[lines.index("[gateway]") :].partition("\n\n")[0]
    hosts.write_text(f"{lines}\n{gateway.replace('[gateway]', '[subscriber]')}\n")
    words = ("--hosts", hosts, "--insecure", "--subscribers", 2, *SMALL)
    finished = run_exchange(tmp_path, *words)
    assert finished.code == 0, finished.err
    subscribers = finished.record["market_data"]["subscribers"]
    assert [subscriber["gaps"] for subscriber in subscribers] == [0, 0]
    assert all(subscriber["messages"] > 0 for subscriber in subscribers)


def test_a_listener_may_listen_on_another_address_than_peers_connect_to(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(
        table("engine", "env", "localhost") + "listen = '127.0.0.1'\n" + table("reporter", "env", "localhost")
    )
    finished = run_exchange(tmp_path, "--hosts", path, "--transport", "tcp", *SMALL)
    assert finished.code == 0, finished.err
    assert finished.record["settings"]["url"].startswith("tcp://localhost:")


@pytest.mark.parametrize(
    ("before", "exchange_there", "sentence"),
    [
        ("no-such-program", EXCHANGE, "the host no-such-program cannot be reached: no-such-program: No such file"),
        ("false", EXCHANGE, "the host false cannot be reached, or has no exchange: `exchange --version` there ended "
         "with exit code 1"),
        ("env", "/nowhere/exchange", "the host env cannot be reached, or has no exchange: `exchange --version` there "
         "ended with exit code 127: env:"),
        ("sh -c 'echo exchange, version 9.9'", EXCHANGE, "has version 9.9 of exchange, and this host "),
    ],
)  # fmt: skip
def test_a_host_that_cannot_take_part_is_named_before_anything_starts(
    before: str, exchange_there: object, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "hosts.toml"
    engine = f"[engine]\nbefore = {json.dumps(before)}\naddress = '127.0.0.1'\nexchange = '{exchange_there}'\n"
    path.write_text(engine + REPORTER_HERE)
    finished = run_exchange(tmp_path / "r", "--hosts", path, *SMALL)
    assert finished.code == 2
    assert sentence in finished.err
    assert not list((tmp_path / "r").glob("*")), "no folder is left"


def test_an_ssh_that_is_refused_is_named_with_its_own_words(sshd: SshServer, tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    before = sshd.command_prefix.replace("engine1", "-p 1 engine1")
    path.write_text(table("engine", before, "127.0.0.1") + REPORTER_HERE)
    finished = run_exchange(tmp_path / "r", "--hosts", path, *SMALL)
    assert finished.code == 2
    assert "ended with exit code 255" in finished.err
    assert "Connection refused" in finished.err
    assert subprocess.run([*sshd.command_prefix.split(), "true"], check=False).returncode == 0
