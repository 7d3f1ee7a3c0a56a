"""A run's secret, and who can read what the run leaves."""

from __future__ import annotations

import stat
from collections.abc import Callable

from runs.services import TOKEN
from tests.exchange_command import Running
from tests.machine import until

Start = Callable[..., Running]
COMPONENTS = ("gateway", "engine", "reporter")


def secret_of(run: Running, role: str) -> str:
    process = until(lambda: run.component(role), role)
    return str(until(lambda: process.environ().get(TOKEN), "its environment"))


def test_the_secret_stands_in_no_argument_and_in_nothing_that_the_run_leaves_which_is_for_its_owner_alone(
    running: Start,
) -> None:
    run = running("--transport", "zeromq", "--rate", 2_000, "--orders", 4_000, "--record").under_way()
    (secret,) = {secret_of(run, role) for role in COMPONENTS}
    assert len(bytes.fromhex(secret)) == 16
    assert not any(secret in word for process in run.family() for word in process.cmdline())
    said = run.finish()
    assert said.code == 0
    assert secret not in said.out + said.err
    left = [path for path in run.folder.rglob("*") if path.is_file()]
    assert {"run.json", "orders.bin", "report.html"} <= {path.name for path in left}
    assert [path for path in left if secret.encode() in path.read_bytes()] == []
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (run.folder, *run.folder.rglob("*"))}
    assert [path for path, mode in modes.items() if mode & 0o077] == []
