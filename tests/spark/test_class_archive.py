"""The archive of Spark's classes: its options for a JVM that writes it, and for one that uses it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_java import JAVA_17, fake_java

from spark.errors import SparkUnavailableError
from spark.sessions.class_archive import ClassArchive, class_archive
from spark.sessions.java import Java

DUMPS = """#!/bin/sh
for option; do case $option in -XX:SharedArchiveFile=*) echo base > "${option#*=}";; esac; done
"""


def java(home: Path, with_base: bool) -> Java:
    executable = fake_java(home, JAVA_17)
    executable.write_text(DUMPS)
    (home / "lib" / "server").mkdir(parents=True)
    if with_base:
        (home / "lib" / "server" / "classes.jsa").touch()
    return Java(executable, 17)


def file_written_by(options: list[str]) -> Path:
    return Path(options[0].removeprefix("-XX:ArchiveClassesAtExit="))


def write(archive: ClassArchive) -> None:
    """Write the archive as a JVM with these options does."""
    file_written_by(archive.options_to_write()).touch()
    archive.finish()


def test_an_archive_that_was_not_written_is_not_used(tmp_path: Path) -> None:
    assert class_archive(java(tmp_path / "jdk", with_base=True), tmp_path).options_to_use() == []


def test_a_written_archive_is_used(tmp_path: Path) -> None:
    archive = class_archive(java(tmp_path / "jdk", with_base=True), tmp_path)
    write(archive)
    assert archive.options_to_use() == [f"-XX:SharedArchiveFile={archive.file}"]


def test_a_java_without_an_archive_of_its_own_classes_gets_one(tmp_path: Path) -> None:
    archive = class_archive(java(tmp_path / "jdk", with_base=False), tmp_path)
    assert archive.options_to_write()[1] == f"-XX:SharedArchiveFile={archive.base}"
    write(archive)
    assert archive.options_to_use() == [f"-XX:SharedArchiveFile={archive.base}:{archive.file}"]


def test_an_unfinished_archive_is_never_used(tmp_path: Path) -> None:
    archive = class_archive(java(tmp_path / "jdk", with_base=True), tmp_path)
    file_written_by(archive.options_to_write()).touch()
    assert archive.options_to_use() == []


def test_a_jvm_that_wrote_nothing_is_an_error(tmp_path: Path) -> None:
    archive = class_archive(java(tmp_path / "jdk", with_base=True), tmp_path)
    archive.options_to_write()
    with pytest.raises(SparkUnavailableError, match="room"):
        archive.finish()


def test_a_java_that_cannot_archive_its_own_classes_is_an_error(tmp_path: Path) -> None:
    archive = class_archive(java(tmp_path / "jdk", with_base=False), tmp_path)
    archive.java.executable.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(SparkUnavailableError, match="archive its own classes"):
        archive.options_to_write()


@pytest.mark.parametrize("with_base", [True, False])
def test_the_two_newest_archives_stay_on_the_disk(with_base: bool, tmp_path: Path) -> None:
    archives = [class_archive(java(tmp_path / name, with_base), tmp_path) for name in "abc"]
    for age, archive in enumerate(archives):
        write(archive)
        os.utime(archive.file, (age, age))
    write(archives[2])
    assert sorted(tmp_path.glob("*.jsa")) == sorted(layer for archive in archives[1:] for layer in archive._layers)


def test_an_unfinished_archive_is_removed_once_it_is_old(tmp_path: Path) -> None:
    old = tmp_path / "spark-x.jsa.unfinished-1"
    new = tmp_path / "spark-x.jsa.unfinished-2"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    class_archive(java(tmp_path / "jdk", with_base=True), tmp_path).options_to_write()
    assert not old.exists()
    assert new.exists()
