"""Folders for what Spark writes on the side: Java and Spark read some of their names as something else than a path."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from spark.errors import SparkUnavailableError

PLAIN_PATH = re.compile(r"[\w./+=@~ -]+")
"""Paths that mean themselves everywhere: a comma parts the list of spark.local.dir, a colon a list of archives, and
the file of log4j2 is a URL."""
OTHERS = ("/tmp", "/var/tmp")


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
