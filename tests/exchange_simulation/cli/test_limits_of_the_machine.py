"""Commands where the machine gives less than usual: no loopback, few open files, folders with strange names."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.launching.record.begun import note_begun
from exchange_simulation.launching.run import conditions_here
from tests.broker import need_rabbitmq
from tests.exchange_command import FinishedCommand, command
from tests.machine import PATIENCE_S, lacks

pytestmark = pytest.mark.usefixtures("no_standing_broker")

SMALL_RUN = ("run", "--orders", 20, "--rate", "max", "--no-spark", "--no-page")
NO_NETWORK = ("unshare", "--user", "--map-root-user", "--net")
"""Starts a program in a namespace whose loopback interface is down."""


def run_in(surroundings: tuple[str, ...], *words: object, **options: Any) -> FinishedCommand:
    """Run a command behind the words of `surroundings`; the options are those of subprocess.run."""
    done = subprocess.run(
        [*surroundings, *command(*words)], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options
    )
    return FinishedCommand(done.returncode, done.stdout, done.stderr)


def need_namespaces() -> None:
    """Skip the test where a user may make no namespaces."""
    if shutil.which("unshare") is None or subprocess.run([*NO_NETWORK, "true"], check=False).returncode:
        lacks("namespaces of users")


def assert_is_one_sentence(done: FinishedCommand, sentence: str) -> None:
    assert (done.code, "Traceback" in done.err) == (2, False), done.err
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1, done.err


def assert_left_nothing(*folders: Path) -> None:
    for folder in folders:
        assert not folder.exists() or not list(folder.iterdir()), f"{folder} should be empty"


@pytest.mark.parametrize("transport", ["tcp", "zeromq", "amqp", "nats"])
def test_without_loopback_a_run_ends_at_once_and_leaves_nothing(transport: str, tmp_path: Path) -> None:
    """It was silent for three minutes over tcp, amqp and nats, and for ten seconds over zeromq."""
    need_namespaces()
    if transport == "amqp":
        need_rabbitmq()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = run_in(
        NO_NETWORK,
        *SMALL_RUN,
        "--transport",
        transport,
        "--results",
        tmp_path / "results",
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert_is_one_sentence(done, "127.0.0.1 cannot be reached from this host itself (Network is unreachable)")
    assert_left_nothing(scratch, tmp_path / "results")


def test_too_few_open_files_for_rabbitmq_are_refused_before_the_start(tmp_path: Path) -> None:
    """RabbitMQ came up and answered nobody, for three minutes."""
    need_rabbitmq()
    done = run_in(
        (),
        *SMALL_RUN,
        "--transport",
        "amqp",
        "--results",
        tmp_path / "results",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    assert_is_one_sentence(done, "RabbitMQ cannot work with 64 open files")
    assert_left_nothing(tmp_path / "results")


@pytest.mark.parametrize("name", ["o'brien", 'double"quote', "back`tick", "\udcff"], ids=ascii)
def test_a_scratch_folder_in_which_rabbitmq_cannot_work_is_refused_at_once(name: str, tmp_path: Path) -> None:
    """RabbitMQ's shell waited for the end of a text in quotes, for three minutes."""
    need_rabbitmq()
    scratch = tmp_path / name
    scratch.mkdir()
    done = run_in(
        (),
        *SMALL_RUN,
        "--transport",
        "amqp",
        "--results",
        tmp_path / "results",
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert_is_one_sentence(done, "RabbitMQ cannot work in ")
    assert "name another folder with TMPDIR" in done.err
    assert_left_nothing(scratch, tmp_path / "results")


NO_UTF8 = "\udcff"
"""A byte of a path that is no UTF-8, as Python writes it."""


def test_a_tape_whose_name_is_no_utf8_is_replayed(tmp_path: Path) -> None:
    """The gateway ended in a traceback."""
    tape = tmp_path / f"tape{NO_UTF8}.bin"
    assert run_in((), "tape", "--orders", 20, "--output", tape).code == 0
    words = ("--transport", "tcp", "--rate", "max", "--no-spark", "--results", tmp_path / "results", "--json")
    done = run_in((), "run", "--tape", tape, *words)
    assert done.code == 0, done.err
    assert done.record["settings"]["tape"] == f"{tmp_path}/tape\\udcff.bin"


@pytest.mark.parametrize("name", [NO_UTF8, "o'br\"ien $x"], ids=["no UTF-8", "quotes"])
@pytest.mark.parametrize("transport", ["nats", "redis"])
def test_a_private_server_works_in_a_folder_of_any_name(transport: str, name: str, tmp_path: Path) -> None:
    """NATS ended: its settings had a bad escape."""
    scratch = tmp_path / name
    scratch.mkdir()
    words = (*SMALL_RUN, "--transport", transport, "--results", tmp_path / "results")
    done = run_in((), *words, env={**os.environ, "TMPDIR": str(scratch)})
    assert done.code == 0, done.err
    assert_left_nothing(scratch)


def test_a_scratch_folder_that_libzmq_cannot_name_is_a_sentence(tmp_path: Path) -> None:
    scratch = tmp_path / NO_UTF8
    scratch.mkdir()
    words = (*SMALL_RUN, "--transport", "zeromq+ipc", "--results", tmp_path / "results")
    done = run_in((), *words, env={**os.environ, "TMPDIR": str(scratch)})
    assert_is_one_sentence(done, "libzmq takes UTF-8 only: name another path, or another folder with TMPDIR")
    assert_left_nothing(scratch, tmp_path / "results")


def test_keys_whose_folder_rabbitmq_cannot_name_are_refused(keys: Path, tmp_path: Path) -> None:
    need_rabbitmq()
    folder = shutil.copytree(keys, tmp_path / NO_UTF8)
    words = (*SMALL_RUN, "--transport", "amqp", "--secure", folder, "--results", tmp_path / "results")
    assert_is_one_sentence(run_in((), *words), "RabbitMQ cannot take keys from ")
    assert_left_nothing(tmp_path / "results")


NO_PROC = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", 'mount -t tmpfs none /proc; exec "$0" "$@"')
"""Starts a program in a namespace whose /proc is empty."""


def need_hidden_proc() -> None:
    if shutil.which("unshare") is None or subprocess.run([*NO_PROC, "true"], check=False).returncode:
        lacks("namespaces of users")


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_without_proc_a_run_measures_and_the_noise_is_unknown(transport: str, tmp_path: Path) -> None:
    """It was a traceback: `/proc/meminfo`."""
    need_hidden_proc()
    done = run_in(NO_PROC, *SMALL_RUN, "--json", "--transport", transport, "--results", tmp_path / "results")
    assert done.code == 0, done.err
    assert "memory_bytes" not in done.record["host"]
    assert not done.record.get("noise")


def test_without_proc_a_benchmark_measures(tmp_path: Path) -> None:
    """Each role ended with exit code 0 and without a word: /dev/fd is a link to /proc/self/fd."""
    need_hidden_proc()
    words = ("bench", "de-spsc", "--transport", "zeromq", "--sizes", 8, "--count", 200_000, "--repeats", 1, "--json")
    done = run_in(NO_PROC, *words, "--results", tmp_path / "results")
    assert done.code == 0, done.err
    assert done.record["status"] == "complete"


def test_without_proc_no_private_broker_is_started(tmp_path: Path) -> None:
    need_hidden_proc()
    done = run_in(NO_PROC, *SMALL_RUN, "--transport", "amqp", "--results", tmp_path / "results")
    assert_is_one_sentence(done, "the broker of amqp needs /proc, which this machine hides")
    assert_left_nothing(tmp_path / "results")
    assert_is_one_sentence(run_in(NO_PROC, "broker", "start"), "a private broker needs /proc")


def test_without_proc_doctor_says_what_it_cannot_tell() -> None:
    need_hidden_proc()
    done = run_in(NO_PROC, "doctor", "--seconds", "0.5", "--json")
    assert done.code == 0, done.err
    verdicts = {item["name"]: item["verdict"] for item in done.record["items"]}
    assert (verdicts["quiet"], verdicts["memory"]) == ("unknown", "unknown")


def test_without_proc_a_run_under_way_is_not_repaired(tmp_path: Path) -> None:
    """Nobody can tell its launcher from another process of the same number there."""
    need_hidden_proc()
    folder = tmp_path / "results" / "begun"
    folder.mkdir(parents=True)
    note_begun(folder, conditions_here("begun"))
    done = run_in(NO_PROC, "results", "repair", folder)
    assert f"is under way: process {os.getpid()} will write its run.json" in done.err


NO_NAME = (
    "unshare",
    "--user",
    "--map-user=54321",
    "--map-group=54321",
    "env",
    "--unset=HOME",
    "--unset=XDG_STATE_HOME",
    "--unset=XDG_CACHE_HOME",
)
"""Starts a program as a user without an entry in /etc/passwd and without a home."""


def need_users() -> None:
    if shutil.which("unshare") is None or subprocess.run([*NO_NAME, "true"], check=False).returncode:
        lacks("namespaces of users")


def without_broker_folder() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "EXCHANGE_BROKER_DIR"}


def test_a_user_without_a_home_runs_over_a_private_broker(tmp_path: Path) -> None:
    """It was a traceback: `Could not determine home directory`."""
    need_users()
    need_rabbitmq()
    words = (*SMALL_RUN, "--json", "--transport", "amqp", "--results", tmp_path / "results")
    done = run_in(NO_NAME, *words, env=without_broker_folder())
    assert done.code == 0, done.err
    assert done.record["broker"]["is_private"]


@pytest.mark.parametrize("command", ["start", "stop"])
def test_a_user_without_a_home_is_told_to_name_the_broker_s_folder(command: str) -> None:
    need_users()
    done = run_in(NO_NAME, "broker", command, env=without_broker_folder())
    assert_is_one_sentence(done, "this user has no home, which would hold the broker's folder: name a folder with")


def test_a_user_without_a_home_has_no_broker_up() -> None:
    need_users()
    done = run_in(NO_NAME, "broker", "status", env=without_broker_folder())
    assert (done.code, done.err.splitlines()) == (1, ["no broker is up; `exchange broker start` starts one"])
