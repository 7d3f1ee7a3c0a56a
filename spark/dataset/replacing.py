"""Replaces files of the tables, so that a reader sees each table whole at any moment, whatever is killed.

    STAGED/KIND/... written ──rename──▶ DECIDED/KIND/... ──a rename a file──▶ KIND/experiment=E/part-0.parquet

The first rename decides. A job that was killed before it has changed nothing; the next job begins with the renames that
one killed after it had left to do.
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
"""A file of this name says that no rows are left for the file in whose place it would be."""


@contextmanager
def changing(folder: DatasetFolder) -> Iterator[None]:
    """Let no other job change the tables; what is written below STAGED counts when the block ends.

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
    if older := [name for name in folder.names() if name.startswith("manifest-")]:
        raise DatasetUnreadableError(
            f"{folder.url} has tables of an older version ({older[-1]}), which other readers read wrong: "
            "remove that folder, or name another by --tables, and make the tables again, with exchange spark ingest"
        )


def staged(name: str) -> str:
    """Return where to write the rows that are to replace files of the table `name`."""
    return f"{STAGED}/{name}"


def replaced_file(name: str) -> str:
    """Return the file that a staged one replaces.

    KIND/experiment=E/part=3/part-*.parquet replaces KIND/experiment=E/part-3.parquet.
    """
    above = name.split("/")[:-1]
    number = above.pop().removeprefix("part=") if above[-1].startswith("part=") else "0"
    return "/".join([*above, f"part-{number}.parquet"])


def _move_files(folder: DatasetFolder) -> None:
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
    """Lock a local folder; others have no lock."""
    if (local := folder.local) is None:
        yield
        return
    local.mkdir(parents=True, exist_ok=True)
    with locked(local, f"another job is changing the tables in {local}: wait for its end, then repeat the command"):
        yield
