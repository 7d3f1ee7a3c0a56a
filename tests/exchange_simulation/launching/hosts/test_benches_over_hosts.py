"""Benchmarks whose roles are on several hosts: network namespaces, hosts behind a real sshd, and another clock."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.exchange_command import FinishedCommand, exchange, exchange_in_process, processes_with_scratch
from tests.exchange_simulation.launching.hosts.conftest import EXCHANGE, WriteHosts, table
from tests.machine import lacks, until
from tests.ssh_server import SshServer

COUNT = 60_000
"""Enough messages for a clock of 10 ms over any transport."""
CLOCK_AHEAD_S = 100_000
CONSUMER_HERE = "[consumer]\naddress = '127.0.0.1'\n"
STREAM = ("de-spsc", "--sizes", "64", "--count", COUNT)
PACED = ("de-spsc", "--sizes", "64", "--seconds", 1)


def bench(folder: Path, hosts: Path, *words: object) -> tuple[FinishedCommand, dict[str, Any]]:
    """Run a benchmark once over these hosts; return how it ended, and its record."""
    finished = exchange(
        "bench", *words, "--repeats", 1, "--keep-noisy", "--hosts", hosts, "--results", folder, "--name", "bench"
    )
    path = folder / "bench" / "bench.json"
    return finished, json.loads(path.read_bytes()) if path.exists() else {}


def repeats(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [repeat for row in record["rows"] for repeat in row["repeats"]]


def test_a_stream_between_two_hosts_arrives_whole(namespaces: WriteHosts, tmp_path: Path) -> None:
    words = (*STREAM, "--transport", "tcp,zeromq", "--insecure")
    finished, record = bench(tmp_path / "r", namespaces("veth"), *words)
    assert finished.code == 0, finished.err
    for repeat in repeats(record):
        roles = repeat["roles"]
        assert roles["publisher"]["sent"] == roles["consumer"]["received"] == COUNT
        assert roles["publisher"]["sent_checksum"] == roles["consumer"]["received_checksum"]
        assert roles["publisher"]["usage"]["cpu_s"] > 0
    publisher, consumer = record["hosts"]
    assert publisher["components"] == ["publisher"]
    assert publisher["before"][0] == "nsenter"
    assert consumer["address"]["consumer"] == "10.77.1.2", "a consumer is where the engine of a run is"
    assert consumer["facts"]["kernel"] == record["host"]["kernel"]
    assert f"publisher on {publisher['host']}: " in " ".join(finished.out.split())


def test_a_delay_between_the_hosts_is_in_the_figures(namespaces: WriteHosts, tmp_path: Path) -> None:
    hosts = namespaces("wan1")
    words = ("--transport", "tcp", "--insecure", "--sizes", "64")
    finished, record = bench(tmp_path / "latency", hosts, "latency", "--count", 200, *words)
    assert finished.code == 0, finished.err
    assert record["rows"][0]["figures"]["round_trip_p50_us"]["median"] > 2000, "each way has a delay of 1 ms"
    finished, record = bench(tmp_path / "stream", hosts, *PACED, "--rate", 1000, *words)
    assert finished.code == 0, finished.err
    assert 1000 < record["rows"][0]["figures"]["due_p50_us"]["median"] < 100_000
    assert [host["clock_bound_us"] for host in repeats(record)[0]["hosts"]] == [0, 0], "namespaces share a clock"


@pytest.mark.parametrize(
    "words",
    [
        "de-pp --sizes 64 --count 2000",
        "fe-spmc --sizes 64 --count 60000 --consumers 3",
        "te-spsc --sizes 64 --count 60000 --patterns 4 --consumers each",
        "perftest --npubs 2 --nsubs 2 --qt 2 --count 20000",
        "perftest --qt 2 --clients 4 --count 20000",
        "request-reply --clients 2 --threads 2 --sizes 64 --warm-up 0.1 --sample 0.3",
    ],
)
def test_every_pattern_has_its_roles_on_two_hosts(words: str, namespaces: WriteHosts, tmp_path: Path) -> None:
    finished, record = bench(tmp_path, namespaces("veth"), *words.split(), "--transport", "zeromq", "--insecure")
    assert finished.code == 0, finished.err
    assert record["status"] == "complete"


def test_a_consumer_behind_ssh_gets_every_message(sshd: SshServer, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(table("consumer", sshd.command_prefix, "127.0.0.1"))
    finished, record = bench(tmp_path / "r", hosts, *STREAM, "--transport", "tcp,zeromq")
    assert finished.code == 0, finished.err
    for repeat in repeats(record):
        assert repeat["roles"]["consumer"]["received"] == COUNT
    assert [host["host"] for host in record["hosts"]] == ["this host", sshd.command_prefix]
    until(lambda: not sshd.sessions(), "the end of all sessions")


@pytest.mark.parametrize("transport", ["tcp", pytest.param("zeromq", marks=pytest.mark.long)])
def test_keys_are_copied_to_a_host_that_has_none(transport: str, keys: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    before = ["unshare", "--mount", "sh", "-c", f'mount --bind {empty} {keys} && exec "$@"', "sh"]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        lacks("mount namespaces")
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(table("consumer", shlex.join(before), "127.0.0.1"))
    finished, record = bench(tmp_path / "r", hosts, *STREAM, "--transport", f"{transport}?keys={keys}")
    assert finished.code == 0, finished.err
    [repeat] = repeats(record)
    assert repeat["roles"]["consumer"]["received"] == COUNT


def test_a_broker_behind_ssh_serves_roles_here(sshd: SshServer, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(table("broker", sshd.command_prefix, "127.0.0.1"))
    finished, record = bench(tmp_path / "r", hosts, *STREAM, "--transport", "nats")
    assert finished.code == 0, finished.err
    assert repeats(record)[0]["roles"]["consumer"]["received"] == COUNT
    until(lambda: not sshd.sessions(), "the end of the broker")


def test_times_one_way_between_two_clocks_have_a_bound(tmp_path: Path) -> None:
    before = f"unshare --time --monotonic {CLOCK_AHEAD_S}"
    if subprocess.run([*before.split(), "true"], capture_output=True, check=False).returncode:
        lacks("time namespaces")
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(table("consumer", before, "127.0.0.1"))
    finished, record = bench(tmp_path / "r", hosts, *PACED, "--rate", 2000, "--transport", "tcp")
    assert finished.code == 0, finished.err
    figures = record["rows"][0]["figures"]
    assert 0 < figures["latency_mean_us" if "latency_mean_us" in figures else "due_mean_us"]["median"] < 1e6
    assert 0 < figures["due_p50_us"]["median"] < 1e6, "no part of the difference of the clocks"
    bounds_us = {host["clock_bound_us"] for host in repeats(record)[0]["hosts"]}
    assert 0 < min(bounds_us) < 1e5
    assert "one-way times are between the clocks of two machines, each time +- " in " ".join(finished.out.split())


def test_a_host_that_is_lost_ends_the_benchmark_with_a_record(sshd: SshServer, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(table("consumer", sshd.command_prefix, "127.0.0.1"))
    words = ("de-spsc", "--sizes", 64, "--rate", 1000, "--seconds", "2", "--repeats", 50, "--transport", "tcp")
    command = [EXCHANGE, "bench", *map(str, words), "--hosts", hosts, "--results", tmp_path / "r", "--name", "bench"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    record = tmp_path / "r" / "bench" / "bench.json"
    until(record.exists, "the first measurement")
    sshd.cut_connections()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    [reason] = json.loads(record.read_bytes())["reasons"]
    assert sshd.command_prefix in reason
    until(lambda: not sshd.sessions(), "the end of all roles")


def test_ctrl_c_ends_the_roles_on_every_host(sshd: SshServer, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(table("publisher", sshd.command_prefix, "127.0.0.1") + CONSUMER_HERE)
    words = ("de-spsc", "--sizes", 64, "--rate", 1000, "--seconds", "2", "--repeats", 50, "--transport", "tcp")
    command = [EXCHANGE, "bench", *map(str, words), "--hosts", hosts, "--results", tmp_path / "r", "--name", "bench"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    record = tmp_path / "r" / "bench" / "bench.json"
    until(record.exists, "the first measurement")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(record.read_bytes())["reasons"] == ["interrupted"]
    until(lambda: not sshd.sessions(), "the end of all roles")
    assert not processes_with_scratch(tmp_path)


TWO_HOSTS = "[publisher]\nbefore = 'env'\n[consumer]\nbefore = 'env -u X'\naddress = '10.1.2.3'\n"


@pytest.mark.parametrize(
    ("file", "words", "sentence"),
    [
        (TWO_HOSTS, "de-spsc --transport shm", "this transport cannot leave a host: use "),
        (TWO_HOSTS, "de-spsc --transport tcp --network veth", "does not go together with --network: it makes hosts of"),
        (TWO_HOSTS, "de-spsc --transport tcp --cpus consumer=0", "does not go together with --cpus: it places roles"),
        (TWO_HOSTS, "supply-chain --transport amqp", "its locations talk with each other on this host: leave it out"),
        (TWO_HOSTS, "de-spsc --transport tcp", "other hosts reach the consumers, and nothing is en"),
        (TWO_HOSTS, "fe-spmc --transport tcp", "[publisher], or [gateway], has no address, and the consumer, on env "),
        (
            "[consumer]\naddress = '10.1.2.3'\n",
            "de-spsc --transport tcp",
            "other hosts reach the consumers, and nothing",
        ),
        ("[consumer.2]\nbefore = 'env'\n", "de-spsc --transport tcp", "all consumers of a benchmark are on one host"),
    ],
)
def test_a_benchmark_that_cannot_be_over_its_hosts_says_why(
    file: str, words: str, sentence: str, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(file)
    finished = exchange_in_process("bench", *words.split(), "--quick", "--hosts", hosts, "--results", tmp_path / "r")
    assert finished.code == 2
    assert sentence in " ".join(finished.err.split())
    assert not list(tmp_path.glob("r/*/bench.json"))


def test_insecure_alone_changes_nothing_and_is_refused(tmp_path: Path) -> None:
    finished = exchange_in_process(
        "bench", "de-spsc", "--sizes", "8", "--count", 64, "--insecure", "--results", tmp_path
    )
    assert finished.code == 2
    assert "--insecure is for roles on several hosts: give --hosts too" in finished.err
