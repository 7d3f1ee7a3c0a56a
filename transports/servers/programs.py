"""Finds the program of a server: named by a variable, beside this Python, or on the PATH."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from transports.base import NotInstalled


def find_program(name: str, variable: str, how_to_get_it: str) -> Path:
    """The path of a server's program. NotInstalled, with `how_to_get_it`, if this machine lacks it.

    A wheel puts its program beside Python, which is not on the PATH unless the virtual environment is active.
    """
    named = os.environ.get(variable)
    if named:
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise NotInstalled(f"{variable} names {named}, which is no program")
        return Path(named)
    beside_python = Path(sysconfig.get_path("scripts")) / name
    if os.access(beside_python, os.X_OK):
        return beside_python
    on_path = shutil.which(name)
    if on_path is None:
        raise NotInstalled(f"{name} is not installed: {how_to_get_it}")
    return Path(on_path)
