"""Commands in surroundings that differ from a terminal: parents that ignore signals, readers that leave, full disks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exchange_command import VALID_STATUSES, Running, command
from tests.machine import PATIENCE_S

FULL = Path("/dev/full")
ONLY_OUTPUT = [("--help",), ("run", "--help"), ("bench",), ("results", "list", "--help")]
SMALL_RUN = ("run", "--orders", 20, "--rate", "max", "--no-spark")


def only_record(results: Path) -> dict[str, object]:
    [path] = results.glob("*/run.json")
    record: dict[str, object] = json.loads(path.read_text())
    return record


def test_under_a_parent_that_ignores_sigchld_a_killed_engine_is_started_again(running: Callable[..., Running]) -> None:
    """Regression: with SIGCHLD ignored, the kernel drops exit codes, and a killed engine seemed to have ended well."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        run = running("--transport", "tcp", "--rate", 2000, "--orders", 6000, "--recover", "--timeout", 60, "--no-page")
    finally:
        signal.signal(signal.SIGCHLD, before)
    run.wait_until_under_way().component("engine").kill()
    said = run.finish()
    assert said.record["status"] in VALID_STATUSES, said.record["reasons"]
    assert (said.code, said.record["recovered"]["restarts"]) == (0, 1)


def test_a_reader_that_leaves_keeps_the_page_and_the_exit_code(tmp_path: Path) -> None:
    """Regression: the run ended with exit code 1, without a page and without an error."""
    reader, writer = os.pipe()
    os.close(reader)
    words = command(*SMALL_RUN, "--transport", "memory", "--results", tmp_path)
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    os.close(writer)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert only_record(tmp_path)["status"] in VALID_STATUSES
    assert len(list(tmp_path.glob("*/report.html"))) == 1


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_full_disk_under_stdout_keeps_the_record_s_exit_code(tmp_path: Path, form: tuple[str, ...]) -> None:
    words = command(*SMALL_RUN, "--no-page", "--transport", "memory", "--results", tmp_path, *form)
    with FULL.open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert done.stderr.count("cannot write to standard output: No space left on device") == 1
    assert only_record(tmp_path)["status"] in VALID_STATUSES


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", ONLY_OUTPUT, ids=" ".join)
def test_a_command_that_only_prints_fails_on_a_full_disk(tmp_path: Path, words: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            command(*words),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            cwd=tmp_path,
        )
    assert (done.returncode, done.stderr) == (1, "Error: cannot write to standard output: No space left on device\n")


def test_kernels_that_may_not_be_compiled_are_a_sentence_that_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "t.bin").touch()
    done = subprocess.run(
        command("match", tmp_path / "t.bin"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert done.stderr.startswith("Error: NUMBA_DISABLE_JIT is set")


@pytest.mark.parametrize("words", [("run", "--help"), ("spark", "ingest", "--help"), ("results", "show", "--help")])
def test_a_python_without_docstrings_prints_the_same_help(words: tuple[str, ...]) -> None:
    """Regression: the help lacked its text and its example."""
    usual = subprocess.run(command(*words), capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    program, *options = command(*words)
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}
    by_variable = subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        env={**surroundings, "PYTHONOPTIMIZE": "2"},
    )
    by_option = subprocess.run(
        [program, "-OO", *options], capture_output=True, text=True, timeout=PATIENCE_S, check=True, env=surroundings
    )
    assert "Example: " in usual.stdout
    assert by_variable.stdout == usual.stdout
    assert by_option.stdout == usual.stdout
