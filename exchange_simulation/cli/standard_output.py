"""Standard output whose reader leaves, or whose disk is full."""

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
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, STDOUT)
            os.close(nowhere)
            if error.errno == errno.EPIPE:
                if not self.goes_on:
                    raise
            else:
                sentence = f"cannot write to standard output: {error.strerror}"
                if not self.goes_on:
                    raise click.ClickException(sentence) from error
                click.echo(sentence, err=True)
            return memoryview(data).nbytes


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Inside, this process's standard output is a StandardOutput, unless something else took its place."""
    before = sys.stdout
    if before is None or before is not sys.__stdout__ or not isinstance(before, io.TextIOWrapper):
        yield
        return
    before.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(StandardOutput()),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
    )
    try:
        yield
    finally:
        with contextlib.suppress(OSError, click.ClickException):
            sys.stdout.flush()
        sys.stdout = before


def go_on_without_output() -> None:
    """Let this command go on when nothing can be written to standard output any more."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, StandardOutput):
        raw.goes_on = True
