"""A user's mistake: a sentence and exit code 2, never a traceback."""

from __future__ import annotations

import click


class UserError(click.ClickException):
    """Says which field or place, what was found there, and what to do."""

    exit_code = 2
