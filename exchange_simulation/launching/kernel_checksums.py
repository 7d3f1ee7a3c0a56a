"""Checksums of compiled kernels, noted at the start of each command: numba keeps none, and executes what it loads.

numba writes each file under another name and renames it, so a file that numba has made anew has another inode. A file
with the inode of the last look and another checksum was changed in place, so it is damaged.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

FIELDS = 3
"""A line of the file with checksums: inode, checksum, path."""


@dataclass(frozen=True)
class FileState:
    """A file as it was at a look."""

    inode: int
    checksum: int
    """The CRC-32 of its bytes."""


def files_changed_in_place(files: Iterable[Path], checksums: Path) -> list[Path]:
    """Return the files that were changed in place since the last call with the same file of checksums.

    The states of the other files are noted in `checksums`. Where that cannot be written, nothing is noted.
    """
    earlier_states = _read(checksums)
    states: dict[bytes, FileState] = {}
    changed = []
    for file in files:
        state = _state_of(file)
        if state is None:
            continue
        name = os.fsencode(file)
        earlier = earlier_states.get(name)
        if earlier is not None and earlier.inode == state.inode and earlier.checksum != state.checksum:
            changed.append(file)
        else:
            states[name] = state
    if states != earlier_states:
        _write(checksums, states)
    return changed


def _state_of(file: Path) -> FileState | None:
    """Return the state of a file; None if it was replaced meanwhile, or is no regular file of ours."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as opened:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return None
        return FileState(about.st_ino, zlib.crc32(opened.read()))


def _read(checksums: Path) -> dict[bytes, FileState]:
    """Return the noted states by path; none if there is no such file. A line that is none is left out."""
    try:
        lines = checksums.read_bytes().splitlines()
    except OSError:
        return {}
    states = {}
    for line in lines:
        words = line.split(b" ", FIELDS - 1)
        if len(words) == FIELDS and words[0].isdigit() and words[1].isdigit():
            states[words[2]] = FileState(int(words[0]), int(words[1]))
    return states


def _write(checksums: Path, states: Mapping[bytes, FileState]) -> None:
    """Note the states in a file, which appears whole, by rename: another command may start at the same time."""
    lines = [b"%d %d %s\n" % (state.inode, state.checksum, name) for name, state in states.items()]
    fresh = checksums.with_name(f"{checksums.name}.{os.getpid()}")
    try:
        fresh.write_bytes(b"".join(lines))
        fresh.replace(checksums)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
