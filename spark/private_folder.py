"""A folder of this user's alone, kept between sessions: what is executed or mapped from it must be ours."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def private_folders() -> Iterator[Path]:
    """The folders to try, best first: the user's cache, then the temporary folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    candidates = [
        Path(cache) / "exchange-simulation",
        Path(tempfile.gettempdir()) / f"exchange-simulation-{os.getuid()}",
    ]
    return (folder for folder in candidates if folder.is_absolute() and _is_ours(folder))


def _is_ours(folder: Path) -> bool:
    """Made, or found, with us as its owner and no one else allowed to write.

    In a shared temporary folder someone else may have taken the name first: lstat, since a link is theirs too.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return ours and os.access(folder, os.W_OK | os.X_OK)
