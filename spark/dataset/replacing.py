"""Replaces files of the tables, so that a reader sees each table whole at any moment, whatever is killed.

    STAGED/KIND/... written ──rename──▶ DECIDED/KIND/... ──a rename a file──▶ KIND/experiment=E/part-0.parquet

The first rename decides. A job that is killed before the first rename has changed nothing. If a job is killed after the
first rename, the next job begins with the renames that are left. The table of runs comes last: a run that it holds has
its rows in every other table. All of this needs renames that happen at once, which object stores do not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark.dataset.folder import DatasetFolder
from spark.dataset.runs import RUNS, refuse_older
from spark.errors import DatasetUnreadableError
from spark.tables.files import locked

STAGED = ".staged"
DECIDED = ".decided"
EMPTIED = ".emptied"
"""The end of the name of a staged file without rows: the file that it replaces is removed."""


@contextmanager
def replacing_files(folder: DatasetFolder) -> Iterator[None]:
    """Lock the tables against other jobs; files that the block writes below STAGED replace others at the block's end.

    TablesBusyError if another job changes them. DatasetUnreadableError if the tables have an older layout, or lie in an
    object store.
    """
    refuse_object_stores(folder)
    with _locked(folder):
        refuse_older(folder)
        _move_files(folder)
        folder.remove(STAGED)
        yield
        if STAGED in folder.names():
            folder.rename(STAGED, DECIDED)
        _move_files(folder)


def refuse_object_stores(folder: DatasetFolder) -> None:
    """Raise DatasetUnreadableError if a rename there copies file by file: a killed job would leave half of them."""
    if not folder.renames_at_once:
        raise DatasetUnreadableError(
            f"{folder.url} is in a file system without a rename that happens at once, so a killed job would leave "
            "half of its tables there: make them in a folder of this machine or in hdfs:, then copy them"
        )


def staged(name: str) -> str:
    """Return where to write the file or the folder that is to replace `name`."""
    return f"{STAGED}/{name}"


def mark_as_emptied(folder: DatasetFolder, name: str) -> None:
    """Stage the removal of a file in place of the staged one, which has no rows."""
    folder.remove(staged(name))
    folder.touch(staged(f"{name}{EMPTIED}"))


def replaced_file(name: str) -> str:
    """Return the file that a staged one replaces. Spark chooses the name of a file without `experiment=E` itself."""
    *folders, file = name.split("/")
    is_summary = len(folders) == 1
    return "/".join([*folders, "part-0.parquet" if is_summary else file])


def _move_files(folder: DatasetFolder) -> None:
    """Move each file below DECIDED to the place of the file that it replaces, those of the table of runs last."""
    files = folder.files(DECIDED)
    for file in sorted(files, key=lambda file: file.startswith(f"{DECIDED}/{RUNS}/")):
        name = file.removeprefix(f"{DECIDED}/")
        if name.endswith(EMPTIED):
            folder.remove(name.removesuffix(EMPTIED))
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
