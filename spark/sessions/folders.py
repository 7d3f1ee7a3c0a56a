"""The folders in which Spark and its Java write on the side, and the folders of ours that outlive a session.

Java and Spark read some names of folders as something else than a path. The folder of a session is removed whatever is
killed:

    this process ──┐
                   ├── a pipe that both have open ──▶ sh, which removes the folder when neither has it open any more
    the JVM ───────┘

A JVM could remove the folder itself, but only once it has started: a SIGKILL of this process before that would leave
the folder. This process alone cannot remove it either: the JVM outlives this process for a while, and still writes.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark.errors import SparkUnavailableError

PLAIN_PATH = re.compile(r"[\w./+=@~ -]+")
"""Paths that mean themselves everywhere: a comma parts the list of spark.local.dir, a colon a list of archives, and
the file of log4j2 is a URL."""
OTHERS = ("/tmp", "/var/tmp")
SESSION_PREFIX = "exchange-spark-"
REMOVE_AT_END_OF_STDIN = 'read -r _; rm -rf -- "$1"'


def is_plain(path: Path) -> bool:
    """Return whether Java and Spark take the path for a path, wherever we hand it to them."""
    return PLAIN_PATH.fullmatch(str(path)) is not None


def scratch_folder() -> Path:
    """Return the folder for temporary files, or another one if Spark cannot take its name.

    SparkUnavailableError if there is none.
    """
    usual = tempfile.gettempdir()
    for name in (usual, *OTHERS):
        folder = Path(name)
        if is_plain(folder) and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise SparkUnavailableError(
        f"Spark cannot work in {usual}: name a folder with TMPDIR whose path has only letters, digits, spaces and any "
        "of . / + = @ ~ _ -"
    )


def private_folders() -> Iterator[Path]:
    """Yield folders that only this user may write, the best first: in the user's cache, in the temporary folder.

    They outlive a session, and we execute or map their files, so nobody else may put files there.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    candidates = [
        Path(cache) / "exchange-simulation",
        scratch_folder() / f"exchange-simulation-{os.getuid()}",
    ]
    return (folder for folder in candidates if folder.is_absolute() and is_plain(folder) and _is_ours(folder))


def _is_ours(folder: Path) -> bool:
    """Make the folder if it is missing; return whether we own it and no one else may write into it.

    Another user may have taken the name in a shared temporary folder. lstat, since a link would be theirs too.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return ours and os.access(folder, os.W_OK | os.X_OK)


@dataclass(frozen=True)
class SessionFolder:
    """The folder stays as long as a process has `descriptor` open. Hand that on to a JVM, by pass_fds of Popen."""

    path: Path
    descriptor: int


@contextmanager
def session_folder() -> Iterator[SessionFolder]:
    """Make a folder for everything that Spark writes on the side, and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=SESSION_PREFIX, dir=scratch_folder()))
    try:
        reading_end, writing_end = os.pipe()
        command = ["/bin/sh", "-c", REMOVE_AT_END_OF_STDIN, "sh", str(folder)]
        # start_new_session: a Ctrl-C in the terminal kills this process, but not the remover.
        remover = subprocess.Popen(
            command, stdin=reading_end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(reading_end)
        try:
            yield SessionFolder(folder, writing_end)
        finally:
            os.close(writing_end)
            remover.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
