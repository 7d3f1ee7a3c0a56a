"""Files that appear under their name when they are whole, or not at all."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from runs.errors import cannot_write


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, under a dot-name until it is whole; a device or a pipe is written as it is."""
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    hidden = path.resolve().with_name(f".{path.resolve().name}.part")
    try:
        with hidden.open("wb") as file:
            yield file
        hidden.replace(path.resolve())
    except BaseException:
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise


@contextlib.contextmanager
def whole_text(path: Path) -> Iterator[TextIO]:
    """The same for text."""
    with whole_file(path) as file, io.TextIOWrapper(file, encoding="utf-8", write_through=True) as text:
        yield text


def write_whole(path: Path, content: bytes) -> Path:
    """The path. ClickException where it takes no file, or the disk is full."""
    try:
        with whole_file(path) as file:
            file.write(content)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path
