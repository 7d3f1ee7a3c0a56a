"""Folders of runs: making and listing them, and writing files in them that readers never see in part."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from exchange import record_kinds
from exchange.json_records import encode_json
from exchange.settings import RunSettings
from exchange.words import printable
from exchange_simulation.launching.errors import UserError, writing
from transports.registry import scheme_of
from transports.regular_files import read_unlinked


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write into. It has a hidden name until the end of the context, and is removed after an error.

    A device or a pipe is written directly. OSError if the file cannot be written.
    """
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
def record_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file of a results folder to write into. It has a hidden name until the end of the context.

    Links are not followed, since another user may have made the folder and put links to our files into it. If the path
    is a link, the link is replaced, and its target stays as it is. OSError if the file cannot be written.
    """
    if not path.is_symlink() and path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "it is no regular file: remove it")
    hidden = path.with_name(f".{path.name}.part")
    hidden.unlink(missing_ok=True)
    try:
        with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
            yield file
        hidden.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise


def read_own_file(path: Path) -> bytes:
    """Return the content of a file of a results folder. OSError for a link, no regular file, or too many bytes."""
    return read_unlinked(path, record_kinds.MOST_RECORD_BYTES, "a record")


def write_whole(path: Path, content: bytes) -> Path:
    """Write the content to the path, and return the path. ClickException or UserError, as `writing` raises them."""
    with writing(path), record_file(path) as file:
        file.write(content)
    return path


def refuse_overwriting(path: Path, overwrite: bool) -> None:
    """Raise UserError if the file is there already and the user did not ask to replace it. A device is no such file."""
    if path.is_file() and not overwrite:
        raise UserError(f"{path} exists already: choose another name, or replace it with --overwrite")


def json_bytes(value: object) -> bytes:
    """Return the value as indented JSON. It may hold numbers of numpy."""
    return encode_json(value, orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a record, with the errors of `write_whole`."""
    write_whole(path, json_bytes(value) + b"\n")


URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""The beginning of a URL of a file system, as spark/dataset/folder.py has it: `my:tables` is a path."""


def local_path(place: str) -> Path | None:
    """Return the path of a local folder from its path or file: URL; None for a URL of another file system."""
    if URL.match(place) is None:
        return Path(place)
    scheme, _, path = place.partition(":")
    return Path(path.removeprefix("//")) if scheme == "file" else None


def run_name(settings: RunSettings) -> str:
    """Return the default name of a run's folder: time, transport, rate, and a random word."""
    rate = "max" if settings.orders_per_s is None else f"{settings.orders_per_s:.10g}"
    scheme = scheme_of(settings.transport).replace("+", "-")
    return dated_name(f"{scheme}-{rate}")


def dated_name(what: str) -> str:
    """Return the default name of a new folder: the time, its kind, and a random word that makes the name unique."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{what}-{secrets.token_hex(3)}"


def new_run_folder(results: Path, name: str) -> Path:
    """Make results/name, the run's folder under its final name, for its owner alone.

    UserError where it exists or cannot be made.
    """
    _check_name(name)
    folder = results / name
    try:
        results.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        _try_writing(folder)
    except FileExistsError as error:
        if not results.is_dir():
            raise UserError(f"{results} is a file: choose a folder with --results") from error
        raise _exists_already(folder) from error
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; choose another place with --results") from error
    return folder


def planned_place(results: Path, name: str | None) -> str:
    """Return the sentence of a plan on the folder that its measurement would make; None is the default name.

    UserError if that folder exists, or cannot have the name.
    """
    if name is None:
        return printable(f"the results will be in a new folder of {results}")
    _check_name(name)
    folder = results / name
    if os.path.lexists(folder):
        raise _exists_already(folder)
    return printable(f"the results will be in {folder}")


def _check_name(name: str) -> None:
    """UserError if no folder can have this name."""
    if not name or name in {".", ".."} or "/" in name or "\n" in name or printable(name) != name:
        raise UserError(f"{name!r} is no name for a run: give one that can be a folder's name")


def _exists_already(folder: Path) -> UserError:
    return UserError(f"{folder} exists already: choose another name or another results folder")


def _try_writing(folder: Path) -> None:
    """Write a test file and remove it. OSError, and the folder is removed, if that fails, as on a full disk."""
    try:
        with whole_file(folder / "writable") as file:
            file.write(b"x" * 4096)
        (folder / "writable").unlink()
    except OSError:
        folder.rmdir()
        raise


def is_measured(folder: Path) -> bool:
    """Return True if the run's folder has orders, answers or measurements."""
    streams = [path for path in folder.glob("*.bin") if path.stat().st_size]
    return bool(streams or list(folder.glob("spool/*.jsonl")))


def run_folders(results: Path) -> list[Path]:
    """Return the folder itself if it is a run's, else the runs in it and in its trials, sorted by name.

    UserError if a folder cannot be read. A folder that is removed meanwhile counts as empty.
    """
    try:
        if _is_run(results):
            return [results]
        runs = []
        for folder in _folders_in(results):
            if _is_run(folder):
                runs.append(folder)
            else:
                runs += _runs_of_trial(folder)
        return runs
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}; give a folder with runs in it") from error


def runs_begun(results: Path) -> Iterator[Path]:
    """Yield the runs with a file in their spool. Each is tested just before it is yielded."""
    return (run for run in run_folders(results) if _has_begun(run))


def runs_begun_or_beginning(results: Path) -> Iterator[Path]:
    """Yield the runs that have begun, and the runs that are about to begin, which have no spool file and no record."""
    return (run for run in run_folders(results) if _has_begun(run) or not (run / "run.json").exists())


def _has_begun(run: Path) -> bool:
    return any((run / "spool").glob("[!.]*.jsonl"))


def _runs_of_trial(folder: Path) -> list[Path]:
    try:
        return [path for path in _folders_in(folder) if _is_run(path)]
    except FileNotFoundError:
        return []


def _folders_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _is_run(folder: Path) -> bool:
    return any(os.path.exists(folder / mark) for mark in ("run.json", "spool"))
