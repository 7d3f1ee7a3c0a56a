"""What a Java exception means, in one line, without its stack trace."""

from __future__ import annotations

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PythonException


def root_cause(failure: Exception) -> str:
    """The innermost exception's own words; must be asked while its JVM still runs."""
    try:
        return _first_line(_innermost(failure))
    except (Py4JError, OSError):
        return "its JVM died; is there enough memory?"


def _innermost(failure: Exception) -> str:
    if isinstance(failure, (Py4JNetworkError, ConnectionError)) or _is_without_answer(failure):
        raise failure
    if isinstance(failure, Py4JJavaError):
        java = failure.java_exception
        while (inner := java.getCause()) is not None:
            java = inner
        return str(java.toString())
    if isinstance(failure, PythonException):
        return _last_line(str(failure)).split(": ", 1)[-1]
    causes = [line for line in str(failure).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else str(failure)


def _is_without_answer(failure: Exception) -> bool:
    """What py4j says where nobody answered: of a call that failed in Java it has more to tell."""
    return type(failure) is Py4JError and "Trace:" not in str(failure)


def _last_line(text: str) -> str:
    return [line.strip() for line in text.splitlines() if line.strip()][-1]


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
