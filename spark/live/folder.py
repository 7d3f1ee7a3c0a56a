"""Where a run's live table lies, and whose work it is."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyspark

from exchange import measurements, seconds
from spark.errors import FollowedElsewhereError, ForeignCheckpointError
from spark.live import facts, note, records, rows, times
from spark.summary import columns, meters
from spark.summary import facts as definitions
from spark.tables import histograms, schemas, spool
from spark.tables.files import PARTS

DECIDING = (
    measurements, seconds, histograms, spool, schemas, columns, meters, definitions,
    facts, note, records, rows, times,
)  # fmt: skip
"""What a row depends on: a table that was begun by other code than this is not gone on with."""
TOLD = {"exchange": "by other code", "Spark": "by another Spark", "place": "in another place"}


class LiveFolder:
    """RUN/live: all of it is derived from RUN/spool, and may be deleted."""

    def __init__(self, run_folder: Path) -> None:
        self.run, self.path = run_folder, run_folder / "live"
        self.checkpoint = self.path / "checkpoint"
        self.records = self.path / "records"
        self.seconds = self.path / "seconds"
        self.notes = self.path / "notes"
        self.work = self.path / "work"
        """What Spark writes before it is looked through and renamed."""
        self._stamp = self.path / "stamp.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Made ready for one follower at a time; the system lets go of it when we are killed, too."""
        for folder in (self.records, self.seconds, self.notes, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as taken:
                raise FollowedElsewhereError(
                    f"{self.run} is followed by another process already: look there, or wait for its end"
                ) from taken
            self._sweep()
            self._check_stamp()
            yield

    def foreign(self, why: str) -> ForeignCheckpointError:
        """The sentence that says what to do."""
        return ForeignCheckpointError(
            f"{self.path} cannot be gone on with ({why}): delete that folder and look again; "
            "all of it is made from the spool, which stays"
        )

    def _check_stamp(self) -> None:
        expected = _stamp_of(self.path)
        if not self.checkpoint.exists() and not any(self.notes.iterdir()):
            replace_file(self._stamp, json.dumps(expected).encode())
            return
        try:
            found: dict[str, str] = dict(json.loads(self._stamp.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise self.foreign("nothing tells which version began it") from error
        if differing := [told for name, told in TOLD.items() if found.get(name) != expected[name]]:
            raise self.foreign(f"it was begun {' and '.join(differing)}")

    @contextmanager
    def damage_named(self) -> Iterator[None]:
        """What was written by us and cannot be read by us."""
        try:
            yield
        except (pa.ArrowInvalid, FileNotFoundError) as error:
            raise self.foreign(f"a file of it is damaged or gone: {error}") from error

    def _sweep(self) -> None:
        """What a follower left that was killed in the middle of a write."""
        shutil.rmtree(self.work)
        self.work.mkdir()
        for folder in (self.records, self.seconds, self.notes):
            for left in folder.glob(f".*{PARTS}"):
                left.unlink(missing_ok=True)


def replace_file(file: Path, content: bytes) -> None:
    """The file appears whole, in place of an earlier one."""
    hidden = file.with_name(f".{file.name}{PARTS}")
    hidden.write_bytes(content)
    hidden.replace(file)


def _stamp_of(path: Path) -> dict[str, str]:
    code = hashlib.sha256()
    for module in DECIDING:
        assert module.__file__ is not None
        code.update(Path(module.__file__).read_bytes())
    version = ".".join(pyspark.__version__.split(".")[:2])
    return {"exchange": code.hexdigest()[:16], "Spark": version, "place": os.fspath(path.resolve())}
