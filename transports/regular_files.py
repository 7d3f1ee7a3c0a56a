"""Reads files that a user, or somebody else, may have put in a place: only regular files, up to a length.

A pipe in a file's place would be waited for, for ever; a device as /dev/zero would fill the memory.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

NOT_REGULAR = "it is no regular file"


def read_regular(path: Path, most_bytes: int, kind: str, flags: int = 0) -> bytes:
    """Read a file. OSError if it is no regular file, or longer than a file of this `kind`, as "a key", may be.

    `flags` are added to those of the open call.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR)
        if about.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has {about.st_size:,} bytes, and {kind} has at most {most_bytes:,}")
        return file.read(most_bytes)


def read_unlinked(path: Path, most_bytes: int, kind: str) -> bytes:
    """Read a file as `read_regular` does. OSError also for a symbolic link: somebody else may have made it."""
    try:
        return read_regular(path, most_bytes, kind, os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed", str(path)) from error
        raise


def check_regular(path: Path) -> None:
    """OSError if the path leads to no regular file, or to none at all."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
