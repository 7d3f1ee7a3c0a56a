"""The folder of a run's live table, which one follower at a time may write, and the stamp of the code that began it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyspark

import exchange
import spark.live
import spark.summary
import spark.tables
from spark.errors import ForeignCheckpointError
from spark.run_facts import ALONE, experiment_of
from spark.tables.files import locked
from spark.tables.schemas import experiment_folder

CODE_OF_ROWS = (exchange, spark.live, spark.tables, spark.summary)
"""The folders and the file with the code on which a row depends. A table that other code has begun is not continued."""
TABLES = "tables"
LIVE = "live"
DIFFERENCES = {"exchange": "by other code", "Spark": "by another Spark", "place": "in another place"}
"""What an error says of a field of the stamp that differs."""


class LiveFolder:
    """RUN/live. All of it is derived from RUN/spool, and may be deleted."""

    def __init__(self, run_folder: Path) -> None:
        self.run = run_folder
        self.path = run_folder / "live"
        self.checkpoint = self.path / "checkpoint"
        self.records = self.path / "records"
        self.seconds = self.path / "seconds"
        """The files of all rows, which the next follower begins with."""
        self.state = self.path / "state.json"
        """The counts of the batches that are complete. A batch writes it last."""
        self.work = self.path / "work"
        """Files under way: each is written here, and renamed to its place once it is whole."""
        self._stamp = self.path / "stamp.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Prepare the folder for one follower. TablesBusyError if it has another one."""
        for folder in (self.records, self.seconds, self._table):
            folder.mkdir(parents=True, exist_ok=True)
        with locked(self.path, f"{self.run} is followed by another process already: look there, or wait for its end"):
            shutil.rmtree(self.work, ignore_errors=True)  # what a killed follower was writing
            self.work.mkdir()
            self._check_stamp()
            yield

    def files_of_hour(self, hour: int) -> tuple[Path, Path]:
        """Return the files of an hour of the run: in `seconds`, and in the table `live`.

        The hour stands before the run's name, which may itself end in a number, as in `x.1`.
        """
        name = self.run.resolve().name
        return self.seconds / f"part-{hour}.parquet", self._table / f"part-{hour}-{name}.parquet"

    @property
    def _table(self) -> Path:
        """The folder of the run's files in the table `live`, beside the tables that ingest makes."""
        run = self.run.resolve()
        experiment = experiment_of(self.run)
        is_part_of_trial = experiment != ALONE
        results = run.parent.parent if is_part_of_trial else run.parent
        return results / TABLES / LIVE / experiment_folder(experiment)

    def foreign_checkpoint_error(self, why: str) -> ForeignCheckpointError:
        """Return the error that says why the folder cannot be continued, and what to do."""
        return ForeignCheckpointError(
            f"{self.path} cannot be continued ({why}): delete that folder and look again; "
            "all of it is made from the spool, which stays"
        )

    def _check_stamp(self) -> None:
        """Stamp a new folder. ForeignCheckpointError if it was begun by another version or Spark, or elsewhere."""
        expected = _stamp_of(self.path)
        if not self.checkpoint.exists() and not self.state.exists():
            self.replace(self._stamp, json.dumps(expected).encode())
            return
        try:
            stamp: dict[str, str] = dict(json.loads(self._stamp.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise self.foreign_checkpoint_error("nothing tells which version began it") from error
        differences = [words for name, words in DIFFERENCES.items() if stamp.get(name) != expected[name]]
        if differences:
            raise self.foreign_checkpoint_error(f"it was begun {' and '.join(differences)}")

    @contextmanager
    def unreadable_files_as_errors(self) -> Iterator[None]:
        """Raise ForeignCheckpointError if a file of this folder cannot be read."""
        try:
            yield
        except (pa.ArrowInvalid, FileNotFoundError) as error:
            raise self.foreign_checkpoint_error(f"a file of it is damaged or gone: {error}") from error

    def replace(self, file: Path, content: bytes) -> None:
        """Write a file of this folder, which appears whole, in place of an earlier one."""
        under_way = self.work / file.name
        under_way.write_bytes(content)
        under_way.replace(file)


def _stamp_of(path: Path) -> dict[str, str]:
    code = hashlib.sha256()
    for module in CODE_OF_ROWS:
        assert module.__file__ is not None
        file = Path(module.__file__)
        for source in sorted(file.parent.glob("*.py")) if file.name == "__init__.py" else [file]:
            code.update(source.read_bytes())
    version = ".".join(pyspark.__version__.split(".")[:2])
    return {"exchange": code.hexdigest()[:16], "Spark": version, "place": os.fspath(path.resolve())}
