"""What ends a command with a sentence, never with a traceback: a user's mistake (2), or a place that fails (1)."""

from __future__ import annotations

import errno
from pathlib import Path

import click

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


class UserError(click.ClickException):
    """Says which field or place, what was found there, and what to do."""

    exit_code = 2


def cannot_write(path: Path, error: OSError) -> click.ClickException:
    """A full disk is nobody's mistake; a place that takes no file is the user's."""
    kind = click.ClickException if error.errno in FULL else UserError
    return kind(f"cannot write {path}: {error.strerror}")
