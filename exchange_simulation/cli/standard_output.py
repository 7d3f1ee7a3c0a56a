"""Standard output and error whose reader leaves, whose terminal is closed, or whose disk is full."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

STDOUT = 1
STDERR = 2


class StandardOutput(io.FileIO):
    """Standard output that a measurement outlives: what cannot be written goes nowhere, and the command goes on."""

    def __init__(self) -> None:
        super().__init__(STDOUT, "w", closefd=False)
        self.goes_on = False
        """Whether the command goes on without output: it leaves a record, and its exit code is the record's."""

    def write(self, data: Any) -> int:
        """Write to standard output.

        On a full disk say so on stderr, or raise ClickException where the output is all that the command makes. A
        reader that left needs no sentence; there BrokenPipeError ends a command without a record.
        """
        try:
            return super().write(data)
        except OSError as error:
            _lead_nowhere(STDOUT)
            if error.errno == errno.EPIPE:
                if not self.goes_on:
                    raise
            else:
                sentence = f"cannot write to standard output: {error.strerror}"
                if not self.goes_on:
                    raise click.ClickException(sentence) from error
                click.echo(sentence, err=True)
            return memoryview(data).nbytes


class StandardError(io.FileIO):
    """Standard error that every command outlives: messages that cannot be written go nowhere."""

    def __init__(self) -> None:
        super().__init__(STDERR, "w", closefd=False)

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            _lead_nowhere(STDERR)
            return memoryview(data).nbytes


def _lead_nowhere(descriptor: int) -> None:
    """Let what is written to the descriptor from now on go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Inside, standard output and error survive what they lead to, unless something else took their place."""
    stdout = sys.stdout
    stderr = sys.stderr
    if isinstance(stdout, io.TextIOWrapper) and stdout is sys.__stdout__:
        stdout.flush()
        sys.stdout = _text_into(StandardOutput(), stdout)
    if isinstance(stderr, io.TextIOWrapper) and stderr is sys.__stderr__:
        stderr.flush()
        sys.stderr = _text_into(StandardError(), stderr)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError, click.ClickException):
                    stream.flush()
        sys.stdout = stdout
        sys.stderr = stderr


def _text_into(raw: io.FileIO, like: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a text stream into `raw` that encodes and buffers as `like` does."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=like.encoding, errors=like.errors, line_buffering=like.line_buffering
    )


def go_on_without_output() -> None:
    """Let this command go on when nothing can be written to standard output any more."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, StandardOutput):
        raw.goes_on = True
