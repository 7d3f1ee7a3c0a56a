"""Checksums of kernels: a file that was changed in place is damaged, a file that was made anew is not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from exchange_simulation.launching.kernel_checksums import files_changed_in_place
from tests.exchange_command import command, exchange_in_process
from tests.machine import PATIENCE_S


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    kernel = tmp_path / "kernel.nbc"
    kernel.write_bytes(b"\x80 machine code .")
    return kernel


def change_in_place(file: Path) -> None:
    """Flip a bit in the file's middle; length, first and last byte stay."""
    with file.open("r+b") as opened:
        middle = file.stat().st_size // 2
        opened.seek(middle)
        byte = opened.read(1)[0]
        opened.seek(middle)
        opened.write(bytes([byte ^ 1]))


def test_a_file_that_was_changed_in_place_is_damaged(kernel: Path, tmp_path: Path) -> None:
    checksums = tmp_path / "checksums"
    assert files_changed_in_place([kernel], checksums) == []
    assert files_changed_in_place([kernel], checksums) == []
    change_in_place(kernel)
    assert files_changed_in_place([kernel], checksums) == [kernel]


def test_a_file_that_numba_made_anew_is_whole(kernel: Path, tmp_path: Path) -> None:
    checksums = tmp_path / "checksums"
    files_changed_in_place([kernel], checksums)
    fresh = tmp_path / "fresh"
    fresh.write_bytes(b"\x80 other code .")
    fresh.replace(kernel)
    assert files_changed_in_place([kernel], checksums) == []
    change_in_place(kernel)
    assert files_changed_in_place([kernel], checksums) == [kernel]


def test_a_damaged_file_of_checksums_is_made_anew(kernel: Path, tmp_path: Path) -> None:
    checksums = tmp_path / "checksums"
    checksums.write_bytes(b"\xff\x00 nonsense\n12 34\n")
    assert files_changed_in_place([kernel], checksums) == []
    change_in_place(kernel)
    assert files_changed_in_place([kernel], checksums) == [kernel]


def test_checksums_that_cannot_be_kept_are_no_error(kernel: Path) -> None:
    assert files_changed_in_place([kernel, kernel.with_name("gone")], Path("/dev/null/checksums")) == []


def test_kernels_that_were_damaged_in_their_middle_are_compiled_anew(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    assert exchange_in_process("tape", "--orders", 10, "--output", tape).code == 0
    folder = tmp_path / "kernels"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    words = command("match", tape)
    for _ in range(2):  # the second command notes the checksums of what the first one has compiled
        subprocess.run(words, env=environment, timeout=PATIENCE_S, capture_output=True, check=True)
    damaged_bytes = {}
    for file in folder.rglob("*.nbc"):
        change_in_place(file)
        damaged_bytes[file] = file.read_bytes()
    subprocess.run(words, env=environment, timeout=PATIENCE_S, capture_output=True, check=True)
    assert damaged_bytes
    left = [file.name for file, content in damaged_bytes.items() if file.exists() and file.read_bytes() == content]
    assert left == []
