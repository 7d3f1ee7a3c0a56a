"""Ids of machine and clock, which processes of one host share if the kernel tells them, and otherwise do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation.launching.hosts.shared_ids import clock_id, machine_id
from exchange_simulation.launching.record import machine
from tests.own_process import in_own_process


def ids(root: Path) -> list[tuple[str, str]]:
    """The ids of machine and clock, read twice below this folder."""
    machine.ROOT = root
    return [(machine_id(), clock_id()), (machine_id(), clock_id())]


def test_processes_of_one_machine_have_the_same_ids() -> None:
    assert in_own_process(ids, machine.ROOT)[0] == (machine_id(), clock_id())


def test_an_id_that_the_kernel_does_not_tell_is_shared_with_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    first, again = in_own_process(ids, tmp_path)
    assert first == again
    assert first[0] != machine_id()
    assert first[1] != clock_id()
