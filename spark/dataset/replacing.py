"""Replaces files of the tables, so that a reader sees each table whole at any moment, whatever is killed.

    STAGED/KIND/... written ──rename──▶ DECIDED/KIND/... ──a rename a file──▶ KIND/experiment=E/part-0.parquet

The first rename decides. A job that is killed before the first rename has changed nothing. If a job is killed after the
first rename, the next job begins with the renames that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark.dataset.folder import DatasetFolder, TablesFolder
from spark.errors import DatasetUnreadableError
from spark.tables.files import locked

STAGED = ".staged"
DECIDED = ".decided"
EMPTIED = "part-emptied"
"""The name of a staged file that has no rows: the file that it replaces is removed."""


@contextmanager
def changing(folder: DatasetFolder) -> Iterator[None]:
    """Lock the tables against other jobs; files that the block writes below STAGED replace others at the block's end.

    TablesBusyError if another job changes them. DatasetUnreadableError if the tables have an older layout.
    """
    with _locked(folder):
        refuse_older(folder)
        _move_files(folder)
        folder.remove(STAGED)
        yield
        if STAGED in folder.names():
            folder.rename(STAGED, DECIDED)
        _move_files(folder)


def refuse_older(folder: TablesFolder) -> None:
    """Raise DatasetUnreadableError if the tables have an older layout."""
    manifests = [name for name in folder.names() if name.startswith("manifest-")]
    if manifests:
        raise DatasetUnreadableError(
            f"{folder.url} has tables of an older version ({manifests[-1]}), which other readers read wrong: "
            "remove that folder, or name another by --tables, and make the tables again, with exchange spark ingest"
        )


def staged(name: str) -> str:
    """Return where to write the rows that are to replace files of the table `name`."""
    return f"{STAGED}/{name}"


def replaced_file(name: str) -> str:
    """Return the file that a staged one replaces.

    KIND/experiment=E/part=3/part-*.parquet replaces KIND/experiment=E/part-3.parquet.
    """
    *folders, _ = name.split("/")
    number = "0"
    if folders[-1].startswith("part="):
        number = folders.pop().removeprefix("part=")
    return "/".join([*folders, f"part-{number}.parquet"])


def _move_files(folder: DatasetFolder) -> None:
    """Move each file below DECIDED to the place of the file that it replaces."""
    for file in folder.files(DECIDED):
        name = file.removeprefix(f"{DECIDED}/")
        if name.endswith(EMPTIED):
            folder.remove(replaced_file(name))
            folder.remove(file)
        else:
            folder.rename(file, replaced_file(name))
    folder.remove(DECIDED)


@contextmanager
def _locked(folder: DatasetFolder) -> Iterator[None]:
    """Lock a local folder; a folder elsewhere has no lock."""
    local = folder.local
    if local is None:
        yield
        return
    local.mkdir(parents=True, exist_ok=True)
    with locked(local, f"another job is changing the tables in {local}: wait for its end, then repeat the command"):
        yield
