"""Mistakes of users, and lost roles: one sentence, the right exit code, no folder and no process left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from tests.broker import is_gone
from tests.exchange_command import command
from tests.machine import PATIENCE_S, until

LONG = ["de-spsc", "--transport", "zeromq", "--sizes", "64", "--count", "1000000000", "--repeats", "1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("de-spsc --sizes 0", "0 is 0 bytes; a message has 1 to 1,048,576"),
        ("de-spsc --sizes 1MiB..1B", "goes down"),
        ("de-spsc --transport zeromq,zeromq", "'--transport': 'zeromq,zeromq': give one or more, each once"),
        ("suite --transport tcp,tcp", "'--transport': 'tcp,tcp': give one or more, each once"),
        ("request-reply --match indexed,indexed", "'--match': 'indexed,indexed': give one or more, each once"),
        ("supply-chain --topology ,", "'--topology': ',': give one or more, each once"),
        ("de-spsc --transport pigeon", "unknown transport 'pigeon'"),
        ("de-spsc --transport tcp://127.0.0.1:7000", "say tcp alone"),
        ("de-spsc --count 0", "--count"),
        ("de-spsc --rate fast", "'fast' is no rate: give messages a second, 0.1 to 100,000,000"),
        ("de-spsc --rate 0", "0 is no rate: give 0.1 to 100,000,000, or max"),
        ("de-spsc --rate 2k,2000", "names a rate twice"),
        (
            "de-spsc --rate 1000@2s,8000",
            "--rate 1000@2s,8000 has no end at 8,000/s: give --seconds 30, or a last @TIME",
        ),
        ("de-spsc --rate 1000@2s,fast@2s", "is no load: give RATE@TIME,RATE@TIME,..."),
        ("de-spsc --rate 1000@2s,1e9@2s", "1e+09 is no rate: give 0.1 to 100,000,000"),
        ("request-reply --rate 100@2s,200", "has no end at 200/s: give a last @TIME"),
        ("supply-chain --rate 500", "begin at the rates of its plan"),
        ("de-spsc --rate 0.1", "--rate 0.1 is a message every 10 s, and a consumer gives up after 10 s without one"),
        ("throughput --transport zeromq --sizes 64KiB --rate 1e8", "64 KiB a second here, before any transport"),
        ("de-mpmc --pairs 8,1", "not in order"),
        ("de-mpmc --pairs two", "is no list of pairs"),
        ("de-mpmc --pairs 0..4", "pairs are 1 to 256"),
        ("batch-size --sizes 4,8", "--sizes has 4: a batch of 6-byte messages has 6 bytes or more"),
        ("perftest --size 0", "0 is 0 bytes; a message has 1 to 1,048,576"),
        ("perftest --size 2MiB", "2,097,152 bytes"),
        ("perftest --transport tcp --npubs 1 --nsubs 1 --qt 1", "has no pattern 'queue'"),
        (
            "perftest --size 7 --nsubs 1 --npubs 2",
            "--size is 7: 8 bytes or more tell messages of several clients apart",
        ),
        ("perftest --mode direct", "'direct' is not one of 'shared', 'fanout', 'topic'"),
        ("perftest --transport tcp --mode topic", "has no pattern 'topic'"),
        ("fe-spmc --consumers 0", "consumers are 1 to 1,024"),
        ("fe-spmc --transport tcp --sizes 64 --consumers 1", "tcp has no pattern 'fanout'"),
        ("fe-spmc --transport nng --sizes 64 --consumers 1", "nng has no pattern 'fanout'; PUB drops"),
        ("te-spsc --binding quotes.#", "4 of 4 patterns (quotes.#, quotes.#, quotes.#, ...) match the key"),
        (
            "te-spsc --binding other.{n}.#",
            "no pattern (other.1.#) matches the key 'quotes.q1.last', and exactly",
        ),
        ("te-spsc --transport amqp,zeromq --binding quotes.q{n}.*", "ZeroMQ matches prefixes"),
        (f"te-spsc --binding a.# --patterns 1 --key {'a.' * 200}", "has to be of at most 255 bytes"),
        ("de-spsc --timeout nan", "'nan' is no duration: give one, as 2, 2s"),
        ("request-reply --sample inf", "'inf' is no duration: give one, as 2, 2s"),
        ("request-reply --transport zeromq --match scan", "zeromq: no queue that could be scanned or preloaded"),
        ("request-reply --transport amqp,zeromq --match scan", "--match indexed --preload 0 needs none"),
        ("request-reply --match guess", "'guess' is not one of"),
        ("de-spsc --transport amqp?prefetch=9", "delivery lossy has none: take acked or confirmed or durable"),
        ("de-spsc --transport amqp?queue=mirrored", "queue is 'mirrored'; it takes classic, quorum, stream"),
        (
            "perftest --transport amqp?queue=stream --delivery acked",
            "amqp?queue=stream: a stream gives each consumer every",
        ),
        ("de-spsc --transport zeromq?hwm=5&hwm=6", "zeromq?hwm=5&hwm=6: hwm is there more than once: give each option"),
        ("de-spsc --transport amqp?client=pika --amqp-client pika", "--amqp-client pika is given, too: say it once"),
        ("de-spsc --transport zeromq?hwm=0", "hwm is '0'; it takes a number of messages, 1 to 2,147,483,647"),
        ("supply-chain --transport zeromq --network gige --interactions 6", "nothing would cross it without a broker"),
        (
            "latency --transport tcp,zeromq --delivery durable",
            "durable, which tcp, zeromq cannot have: use amqp or amqps",
        ),
        ("latency --transport tcp --sizes 64 --count 10G", "10,000,000,000 round trips are too many"),
        ("de-pp --transport tcp --sizes 64 --rate 1M --seconds 60", "of 50,000,000 or fewer"),
        (f"de-spsc --rate {','.join(['1000@5ms'] * 1000)}", "a load of 1,000 steps is too long for a benchmark"),
        ("suite --transport tcp --amqp-client pika", "--amqp-client is pika, which tcp cannot have: use amqp"),
        ("de-nothing", "No such command"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_no_folder(words: str, message: str, tmp_path: Path) -> None:
    finished = CliRunner().invoke(main, ["bench", *words.split(), *_results_option(words, tmp_path)])
    assert finished.exit_code == 2, finished.output
    assert message in " ".join(finished.output.split())
    assert list(tmp_path.iterdir()) == []


def _results_option(words: str, results: Path) -> list[str]:
    """The option `--results`; none for a command that does not exist."""
    return [] if words == "de-nothing" else ["--results", str(results)]


@pytest.mark.parametrize(
    ("words", "allowed", "message"),
    [
        (
            "de-mpmc --sizes 64 --pairs 1,64",
            150,
            "zeromq, 64 B, 64 pairs: 128 roles and 128 ports need a descriptor each, and this shell allows 150",
        ),
        ("fe-spmc --consumers 100", 250, "100 consumers need up to two descriptors each"),
        ("te-spsc --consumers each --patterns 100", 250, "100 consumers need up to two descriptors each"),
    ],
)
def test_more_roles_than_descriptors_are_refused_before_anything_starts(
    words: str, allowed: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _which: (allowed, allowed))
    words_of_command = ["bench", *words.split(), "--transport", "zeromq", "--results", str(tmp_path)]
    finished = CliRunner().invoke(main, words_of_command)
    assert finished.exit_code == 2
    assert message in " ".join(finished.output.split())
    assert list(tmp_path.iterdir()) == []


class RunningBenchmark:
    """A benchmark that runs for a long time; waits until both roles are at work."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.scratch = results.parent / "scratch"
        self.scratch.mkdir()
        self.process = psutil.Popen(
            command("bench", *LONG, "--results", results, "--name", "first"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(self.scratch)},
        )
        self.roles: list[psutil.Process] = []
        until(self._are_roles_at_work, "two roles that use the processor")
        self.family = self.process.children(recursive=True)

    def _are_roles_at_work(self) -> bool:
        try:
            self.roles = [child for child in self.process.children() if "bench" in child.cmdline()]
            return len(self.roles) == 2 and all(cpu_s(role) > 0.1 for role in self.roles)
        except psutil.Error:  # a child has just ended
            return False


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBenchmark]:
    run = RunningBenchmark(tmp_path / "results")
    yield run
    if run.process.poll() is None:
        run.process.kill()
    run.process.communicate()


def test_a_consumer_that_is_killed_is_named_and_ends_the_run(running: RunningBenchmark) -> None:
    running.roles[0].kill()
    out, _ = running.process.communicate(timeout=PATIENCE_S)
    assert running.process.returncode == 1
    assert "partial: zeromq, 64 B: the consumer was killed by SIGKILL" in out
    assert all(map(is_gone, running.family))
    assert list(running.scratch.iterdir()) == []


def test_a_killed_launcher_leaves_its_measurements_and_no_process(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ["de-spsc", "--transport", "zeromq", "--sizes", "64", "--count", "100k", "--repeats", "10000"]
    with subprocess.Popen(
        command("bench", *words, "--results", tmp_path, "--name", "first"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("de-spsc: 1 cell of up to 2 roles, measured 10,000 times: about ")
        assert process.stderr.readline().startswith("de-spsc 1: zeromq, 64 B:")
        family = psutil.Process(process.pid).children(recursive=True)
        assert family
        assert "running" in CliRunner().invoke(main, ["results", "list", "--results", str(tmp_path)]).output
        process.kill()
    until(lambda: all(map(is_gone, family)), "the end of all roles")
    assert list(scratch.iterdir()) == []
    record = orjson.loads((tmp_path / "first" / "bench.json").read_bytes())
    assert record["status"] == "partial"
    assert record["reasons"] == ["it goes on, or was killed"]
    assert record["rows"][0]["figures"]["messages_per_s"]["n"] >= 1
    assert "partial" in CliRunner().invoke(main, ["results", "list", "--results", str(tmp_path)]).output
    assert CliRunner().invoke(main, ["report", str(tmp_path / "first")]).exit_code == 0
    assert "it goes on, or was killed" in (tmp_path / "first" / "bench.html").read_text()


def test_ctrl_c_before_a_measurement_leaves_no_process_and_folder(running: RunningBenchmark) -> None:
    assert list(running.results.glob("*/*")) == []
    running.process.send_signal(signal.SIGINT)
    _, err = running.process.communicate(timeout=PATIENCE_S)
    assert running.process.returncode == 130
    assert "interrupted" in err
    assert all(map(is_gone, running.family))
    assert list(running.scratch.iterdir()) == []
    assert list(running.results.iterdir()) == []
