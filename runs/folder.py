"""A run's folder: made once, under its final name."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

import orjson

from exchange.settings import RunSettings
from runs.errors import UserError
from runs.whole_file import whole_file, write_whole
from transports.registry import scheme_of


def run_name(settings: RunSettings) -> str:
    """When, over what, how fast, and something to tell two apart."""
    rate = "max" if settings.orders_per_s is None else f"{settings.orders_per_s:.10g}"
    scheme = scheme_of(settings.transport).replace("+", "-")
    return dated_name(f"{scheme}-{rate}")


def dated_name(what: str) -> str:
    """The default name of a new folder: the time, what it holds, and something to tell two apart."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{what}-{secrets.token_hex(3)}"


def new_run_folder(results: Path, name: str) -> Path:
    """Make results/name. UserError where it exists, or the place takes no folder."""
    if not name or name in {".", ".."} or "/" in name:
        raise UserError(f"{name!r} is no name for a run: give one that can be a folder's name")
    folder = results / name
    try:
        results.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        _try_writing(folder)
    except FileExistsError as error:
        if not results.is_dir():
            raise UserError(f"{results} is a file: choose a folder with --results") from error
        raise UserError(f"{folder} exists already: choose another name or another results folder") from error
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; choose another place with --results") from error
    return folder


def _try_writing(folder: Path) -> None:
    """A disk that is full is noticed before the run, and no empty folder stays."""
    try:
        with whole_file(folder / "writable") as file:
            file.write(b"x" * 4096)
        (folder / "writable").unlink()
    except OSError:
        folder.rmdir()
        raise


def is_measured(folder: Path) -> bool:
    """Whether a run got so far that there is something to keep."""
    streams = [path for path in folder.glob("*.bin") if path.stat().st_size]
    return bool(streams or list(folder.glob("spool/*.jsonl")))


def write_json(path: Path, value: dict[str, Any]) -> None:
    """The file appears whole, or not at all."""
    write_whole(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n")
