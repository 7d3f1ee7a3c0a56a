"""The folder of compiled kernels: which one is taken where, and that damaged files count as missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.launching import kernel_cache
from exchange_simulation.launching.kernel_cache import ROOT, KernelFolder, choose_folder, is_damaged, problem_with
from exchange_simulation.launching.notices import notices_to
from tests.exchange_command import command, exchange_in_process
from tests.machine import PATIENCE_S, lacks

NO_HOME = "/dev/null"
"""A home in which nobody can make a folder, not even root."""
IN_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")
READ_ONLY = f'mount --bind "{ROOT}" "{ROOT}"; mount -o remount,bind,ro "{ROOT}"; exec "$0" "$@"'
"""A script that makes our sources read-only, then runs a command."""


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    tape = tmp_path / "tape.bin"
    assert exchange_in_process("tape", "--orders", 10, "--output", tape).code == 0
    return tape


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, and no other place for kernels than there; returns it."""
    monkeypatch.setattr(kernel_cache, "ROOT", Path("/dev/null/site-packages"))
    monkeypatch.setenv("HOME", NO_HOME)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def matched(tape: Path, *before: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `exchange match` behind the words `before`."""
    words = [*before, *command("match", tape)]
    surroundings = {**os.environ, **env}
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, env=surroundings, check=False)


def test_damaged_kernels_are_compiled_anew(tape: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    assert matched(tape, NUMBA_CACHE_DIR=str(folder)).returncode == 0
    files = sorted(folder.rglob("*.nb[ci]"))
    assert {file.suffix for file in files} == {".nbi", ".nbc"}
    damages = (b"", b"garbage", b"\x80\x05cut short")
    for number, file in enumerate(files):
        file.write_bytes(damages[number % len(damages)])
    done = matched(tape, NUMBA_CACHE_DIR=str(folder))
    assert done.returncode == 0
    assert done.stderr == ""
    assert not any(map(is_damaged, folder.rglob("*.nb[ci]")))


def test_whole_kernels_are_left_alone(tape: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    assert matched(tape, NUMBA_CACHE_DIR=str(folder)).returncode == 0
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.nb[ci]")}
    assert matched(tape, NUMBA_CACHE_DIR=str(folder)).returncode == 0
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.nb[ci]")} == before


def test_a_read_only_installation_without_a_home_keeps_kernels_among_temporary_files(
    tape: Path, tmp_path: Path
) -> None:
    if shutil.which("unshare") is None or subprocess.run([*IN_NAMESPACE, READ_ONLY, "true"], check=False).returncode:
        lacks("namespaces of users")
    done = matched(tape, *IN_NAMESPACE, READ_ONLY, HOME=NO_HOME, XDG_CACHE_HOME="", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    [sentence] = done.stderr.splitlines()
    folder = tmp_path / f"exchange-kernels-{os.geteuid()}"
    assert sentence == (
        f"neither {ROOT} nor the user's cache folder can keep compiled kernels: kernels are kept in {folder}"
    )
    assert list(folder.rglob("*.nbc"))


def test_an_unusable_folder_is_named_and_another_folder_is_used(tape: Path) -> None:
    done = matched(tape, NUMBA_CACHE_DIR="/dev/null/kernels")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("NUMBA_CACHE_DIR is /dev/null/kernels, which cannot be a folder, since /dev/null is")


def test_a_full_disk_keeps_no_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problem_with(tmp_path / "new" / "folder") == ""
    monkeypatch.setattr(kernel_cache, "LEAST_ROOM_BYTES", 1 << 80)
    assert problem_with(tmp_path / "new" / "folder") == "is on a full disk"


def test_the_folder_that_the_user_names_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert choose_folder() == KernelFolder(tmp_path / "mine")


def test_a_home_comes_before_temporary_files(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(elsewhere))
    assert choose_folder() == KernelFolder(elsewhere / ".cache" / "numba")


@pytest.mark.parametrize("make", [lambda folder: folder.mkdir(mode=0o777), lambda folder: folder.symlink_to(".")])
def test_a_folder_that_other_users_can_write_is_not_used(make: object, elsewhere: Path) -> None:
    """Numba executes what it loads."""
    shared = elsewhere / f"exchange-kernels-{os.geteuid()}"
    assert choose_folder().path == shared
    before = os.umask(0)
    try:
        make(shared)  # type: ignore[operator]
    finally:
        os.umask(before)
    assert not choose_folder().is_lasting


def test_doctor_says_where_kernels_are_kept() -> None:
    finished = exchange_in_process("doctor", "--seconds", "0.5")
    [line] = [line for line in finished.out.splitlines() if line.startswith("kernels ")]
    assert "kept in " in line


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has not chosen a folder yet."""
    for name in (kernel_cache.SETTLED_VARIABLE, "NUMBA_CACHE_DIR"):
        monkeypatch.setenv(name, "so that it is gone again after the test")
        monkeypatch.delenv(name)
    kernel_cache.settled_folder.cache_clear()
    yield
    kernel_cache.settled_folder.cache_clear()


@pytest.mark.usefixtures("undecided")
def test_no_room_anywhere_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "LEAST_ROOM_BYTES", 1 << 80)
    refused = exchange_in_process("match", "any.bin")
    assert refused.code == 2
    assert "can keep compiled kernels, and " in refused.err
    assert "is on a full disk: name a folder that can be written to, with NUMBA_CACHE_DIR" in refused.err
    assert exchange_in_process("results", "--help").code == 0, "it needs no kernels"


@pytest.mark.usefixtures("undecided")
def test_a_folder_for_one_command_is_told_and_removed_at_its_end(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / f"exchange-kernels-{os.geteuid()}").symlink_to("somebody else's")
    ends: list[tuple[Any, ...]] = []
    monkeypatch.setattr(kernel_cache.atexit, "register", lambda *call, **_: ends.append(call))
    monkeypatch.setattr(kernel_cache.tempfile, "tempdir", str(elsewhere))
    said: list[str] = []
    with notices_to(said.append):
        kernel_cache.settle_kernel_cache()
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    assert folder.parent == elsewhere
    assert said[0].endswith(f"kernels are kept in {folder}, for this command alone, and compiled anew by the next one")
    assert ends == [(shutil.rmtree, str(folder))]
