"""The errors of spark/, each a sentence that says what to do; some are made of Spark's own exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PythonException

FULL_DISK = ("No space left on device", "Disk quota exceeded")
FORBIDDEN_FILE = ("Permission denied", "Read-only file system")
"""What causes say of a disk that is full, and of a file that may not be used."""


class SparkError(Exception):
    """The analysis could not be done; the run itself is untouched."""


class SparkUnavailableError(SparkError):
    """This machine cannot run a Spark session: no usable Java, or its JVM did not start."""


class RunUnreadableError(SparkError):
    """The run's folder, its run.json or its spool cannot be read."""


class RunUnfinishedError(SparkError):
    """The run has no run.json, which marks a finished run: it goes on, or was killed."""


class TablesUnwritableError(SparkError):
    """The tables cannot be written: the disk is full or read-only."""


class DatasetUnreadableError(SparkError):
    """The folder holds no tables of runs, or damaged ones, or those of another version."""


class TablesBusyError(SparkError):
    """Another process is changing the tables, or keeps the run's live table."""


class SparkJobError(SparkError):
    """A Spark job failed for a reason of its own."""


class ForeignCheckpointError(SparkError):
    """The live table was begun by other code, or is damaged."""


@contextmanager
def typed_errors(place: Path | str) -> Iterator[None]:
    """Raise a SparkError, one sentence, in place of an exception of Spark's with a Java stack trace, or of Arrow's.

    `place` is what is analysed: a run's folder, or that of the tables. Use it inside the session, since the cause is
    read from the JVM.
    """
    try:
        yield
    except BrokenPipeError:  # stdout was closed, as by `| head`; a lost JVM raises another error
        raise
    except (PySparkException, Py4JError, pa.ArrowException, OSError) as failure:
        cause = root_cause(failure)
        if any(words in cause for words in FULL_DISK):
            raise TablesUnwritableError(
                f"the disk filled up while {place} was analysed: make room, then repeat the command"
            ) from failure
        if any(words in cause for words in FORBIDDEN_FILE):
            raise RunUnreadableError(f"a file of {place} may not be used ({cause}): check its permissions") from failure
        raise SparkJobError(f"{place} could not be analysed: {cause}") from failure


def root_cause(failure: Exception) -> str:
    """Return the first line of the innermost exception, without stack trace. Call it while the JVM still runs."""
    try:
        lines = _lines(_innermost(failure))
    except (Py4JError, OSError):
        return "its JVM died; is there enough memory?"
    return lines[0] if lines else "no reason given"


def is_of_disk(cause: str) -> bool:
    """Return whether a cause is the disk's fault, or that of its permissions."""
    return any(words in cause for words in (*FULL_DISK, *FORBIDDEN_FILE))


def _innermost(failure: Exception) -> str:
    """Return the text of the innermost exception; raise the failure itself if the JVM is gone."""
    if isinstance(failure, (Py4JNetworkError, ConnectionError)) or _is_without_answer(failure):
        raise failure
    if isinstance(failure, Py4JJavaError):
        exception = failure.java_exception
        cause = exception.getCause()
        while cause is not None:
            exception = cause
            cause = exception.getCause()
        return str(exception.toString())
    if isinstance(failure, PythonException):
        return _lines(str(failure))[-1].split(": ", 1)[-1]
    causes = [line for line in str(failure).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else str(failure)


def _is_without_answer(failure: Exception) -> bool:
    """Return whether py4j got no answer from the JVM; the error of a call that failed in Java has a trace."""
    return type(failure) is Py4JError and "Trace:" not in str(failure)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
