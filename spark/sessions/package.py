"""Our packages in one zip file, for executors that may be on other hosts; each host unpacks it once.

    here                            there, in an executor's Python
    package_zip ── Spark's files ──▶ zip on sys.path ── use_unpacked ──▶ CACHE/package-HASH in front of it

numba keeps compiled kernels by the path of their file, and Spark puts the zip elsewhere in each session, so kernels
imported from the zip would be compiled anew each time. A folder named after its content is the same in each session.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

PACKAGES = (
    "exchange",
    "exchange_simulation",
    "gateway",
    "matching_engine",
    "spark",
    "stats_reporter",
    "transports",
)
ZIP_NAME = "exchange_packages.zip"
FOLDER = "package-"
UNUSED_AFTER_S = 7 * 24 * 3600
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date that a zip can hold: the date of every entry, so that equal sources give equal bytes."""


def package_zip(folder: Path) -> Path:
    """Zip all our modules and their data files into `folder`; the same sources give the same bytes."""
    root = Path(__file__).parents[2]
    target = folder / ZIP_NAME
    paths: list[Path] = []
    for package in PACKAGES:
        paths += (root / package).rglob("*")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(paths):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(str(path.relative_to(root)), FIRST_DATE)
                file.writestr(entry, path.read_bytes())
    return target


def use_unpacked() -> None:
    """In an executor: unpack the shipped zip, if there is one, and import from the folder from now on."""
    zip_paths = [path for path in sys.path if path.endswith(f"/{ZIP_NAME}")]
    if not zip_paths:
        return
    zip_path = zip_paths[0]
    folder = unpacked_folder(Path(zip_path))
    if folder is None:
        return  # the packages are imported from the zip
    if str(folder) not in sys.path or sys.path.index(str(folder)) > sys.path.index(zip_path):
        sys.path.insert(0, str(folder))


def unpacked_folder(shipped: Path) -> Path | None:
    """Unpack the zip if it is new; return the folder with its content, None if this user has no private folder."""
    from spark.sessions.folders import private_folders  # executors import this file before the other packages

    parent = next(private_folders(), None)
    if parent is None:
        return None
    target = parent / (FOLDER + hashlib.sha256(shipped.read_bytes()).hexdigest()[:16])
    if not target.is_dir():
        _remove_unused(parent)
        _unpack(shipped, target)
    os.utime(target)
    return target


def _unpack(shipped: Path, target: Path) -> None:
    """Unpack into `target`, which appears whole, by rename: another executor may be unpacking the same zip."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with zipfile.ZipFile(shipped) as file:
            file.extractall(fresh)
        fresh.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _remove_unused(parent: Path) -> None:
    """Remove packages of former versions, and those that killed executors left half unpacked."""
    for folder in [*parent.glob(f"{FOLDER}*"), *parent.glob(f".{FOLDER}*")]:
        with suppress(OSError):  # another process was quicker
            if time.time() - folder.stat().st_mtime > UNUSED_AFTER_S:
                shutil.rmtree(folder, ignore_errors=True)
