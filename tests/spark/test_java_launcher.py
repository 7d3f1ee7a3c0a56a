"""The launcher that starts Java without Spark's vector module, and the private folder that holds it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from spark.errors import SparkUnavailableError
from spark.sessions.folders import private_folders
from spark.sessions.java import launcher_home

MODULE = "jdk.incubator.vector"


def printing_java(folder: Path) -> Path:
    """Make a Java that prints each of its arguments on a line."""
    folder.mkdir(exist_ok=True)
    (folder / "java").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    (folder / "java").chmod(0o755)
    return folder / "java"


def arguments_received(launcher: Path, *arguments: str) -> list[str]:
    finished = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    return finished.stdout.splitlines()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-cp", "a b", f"--add-modules={MODULE}", "Main", ""], ["-cp", "a b", "Main", ""]),
        (["--add-modules", MODULE, "Main"], ["Main"]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
        ([MODULE, "--add-modules"], [MODULE, "--add-modules"]),
        (["-Dx=$HOME `id` \"'*"], ["-Dx=$HOME `id` \"'*"]),
        ([f"--add-modules={MODULE}", "--add-modules", MODULE], []),
    ],
)
def test_only_the_vector_module_is_dropped(tmp_path: Path, given: list[str], expected: list[str]) -> None:
    home = launcher_home(printing_java(tmp_path / "with 'a' $quote"), [tmp_path])
    # Without arguments, the shell's printf prints an empty line.
    assert arguments_received(home / "bin" / "java", *given) == (expected or [""])


def test_a_launcher_is_written_once_and_again_if_damaged(tmp_path: Path) -> None:
    java = printing_java(tmp_path)
    launcher = launcher_home(java, [tmp_path]) / "bin" / "java"
    first = launcher.stat()
    assert launcher_home(java, [tmp_path]) == launcher.parent.parent
    assert launcher.stat() == first
    launcher.write_text("damaged")
    launcher_home(java, [tmp_path])
    assert arguments_received(launcher, "mended") == ["mended"]
    assert list(launcher.parent.iterdir()) == [launcher]


def test_another_java_has_another_launcher(tmp_path: Path) -> None:
    homes = {launcher_home(printing_java(tmp_path / name), [tmp_path]) for name in ("a", "b")}
    assert len(homes) == 2


def test_a_folder_mounted_noexec_gets_no_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noexec = tmp_path / "noexec"
    usable = tmp_path / "usable"
    access = os.access

    def access_without_noexec(path: Path, mode: int) -> bool:
        return noexec not in Path(path).parents and access(path, mode)

    monkeypatch.setattr(os, "access", access_without_noexec)
    assert launcher_home(printing_java(tmp_path), [noexec, usable]).parent == usable
    with pytest.raises(SparkUnavailableError, match="XDG_CACHE_HOME"):
        launcher_home(printing_java(tmp_path), [noexec])


def test_private_folders_are_the_cache_then_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    folders = list(private_folders())
    assert folders == [
        tmp_path / "cache" / "exchange-simulation",
        tmp_path / "tmp" / f"exchange-simulation-{os.getuid()}",
    ]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_folder_that_others_may_write_or_a_link_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache" / "exchange-simulation").mkdir(parents=True)
    (tmp_path / "cache" / "exchange-simulation").chmod(0o777)
    (tmp_path / f"exchange-simulation-{os.getuid()}").symlink_to(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert list(private_folders()) == []
