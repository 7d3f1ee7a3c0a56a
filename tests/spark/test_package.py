"""Our packages as a zip, and the folder into which an executor unpacks the zip."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark.sessions.package import PACKAGES, ZIP_NAME, package_zip, unpacked_folder

IMPORTED = """
import sys
from spark.sessions.package import use_unpacked
use_unpacked(); use_unpacked()
sys.modules["scipy"] = None  # numba would import it for linear algebra
import exchange.results, gateway.seeds
print(exchange.__file__)
print(gateway.seeds.purpose_bits.stats.cache_path)
print(gateway.seeds.instrument_seed(1, 1))
"""


def test_the_zip_holds_every_package_with_its_data_and_nothing_compiled(tmp_path: Path) -> None:
    names = zipfile.ZipFile(package_zip(tmp_path)).namelist()
    assert {name.partition("/")[0] for name in names} == set(PACKAGES)
    assert "exchange_simulation/experiments/simulate/partitions.py" in names
    assert any(name.endswith(".css") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_same_sources_make_the_same_zip(tmp_path: Path) -> None:
    first = package_zip(tmp_path).read_bytes()
    assert package_zip(tmp_path).read_bytes() == first


def test_an_executor_imports_from_a_folder_named_after_its_content(tmp_path: Path) -> None:
    """The zip lies elsewhere in each session."""
    printed = []
    for session in ("first", "second"):
        (tmp_path / session).mkdir()
        shipped = package_zip(tmp_path / session)
        environ = {**os.environ, "PYTHONPATH": str(shipped), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        command = [sys.executable, "-c", IMPORTED]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
        printed.append(done.stdout.splitlines())
    (folder,) = (tmp_path / "cache" / "exchange-simulation").glob("package-*")
    assert printed[0] == printed[1]
    assert printed[0][:2] == [str(folder / "exchange" / "__init__.py"), str(folder / "gateway" / "__pycache__")]
    assert list((folder / "gateway" / "__pycache__").glob("seeds.purpose_bits*.nbi"))


def test_packages_unused_for_a_week_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    unused = unpacked_folder(_zipped(tmp_path / "unused", "first version"))
    recent = unpacked_folder(_zipped(tmp_path / "recent", "second version"))
    assert unused is not None
    assert recent is not None
    os.utime(unused, (0, 0))
    newest = unpacked_folder(_zipped(tmp_path / "newest", "third version"))
    assert newest is not None
    assert newest.exists()
    assert recent.exists()
    assert not unused.exists()


def _zipped(folder: Path, content: str) -> Path:
    folder.mkdir()
    with zipfile.ZipFile(folder / ZIP_NAME, "w") as file:
        file.writestr("module.py", content)
    return folder / ZIP_NAME
