"""Roles that are started one by one, as on hosts of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.cli import main

COUNT = 500


@contextmanager
def listening(part: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """(the URL on which it listens, its process)."""
    words = ["role", part, "--listen", "zeromq://127.0.0.1:0", "--run", "first", "--count", str(COUNT), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", "bench", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        yield process.stderr.readline().rpartition(" ")[2].strip(), process
    finally:
        process.kill()
        process.communicate()


def role(*words: str) -> Any:
    return CliRunner().invoke(main, ["bench", "role", *words])


@pytest.mark.parametrize(("there", "here"), [("consume", "publish"), ("answer", "ask")])
def test_both_ends_tell_the_same_of_what_went_between_them(there: str, here: str) -> None:
    with listening(there) as (url, process):
        done = role(here, "--connect", url, "--run", "first", "--count", str(COUNT), "--json")
        out, _ = process.communicate(timeout=60)
    ours, theirs = json.loads(done.stdout), json.loads(out)
    assert (done.exit_code, process.returncode) == (0, 0)
    assert ours["sent"] == theirs["received"] == COUNT
    compared = theirs if there == "consume" else ours  # who answers does not look at what it sends back
    assert ours["sent_checksum"] == compared["received_checksum"]
    assert "latency_mean_us" not in theirs["figures"]


def test_a_peer_that_never_comes_is_told() -> None:
    done = role("consume", "--listen", "zeromq://127.0.0.1:0", "--run", "first", "--timeout", "0.1")
    assert done.exit_code == 1
    assert "nothing came for 0.1 s; 0 of 100,000 messages came" in done.stdout


def test_a_role_listens_or_connects() -> None:
    done = role("consume", "--run", "first")
    assert done.exit_code == 2
    assert "one of --listen and --connect" in done.output
