"""Our packages in one zip file, for executors that may be on other hosts; unpacked once by each host that runs them.

    here                            there, in an executor's Python
    package_zip ── Spark's files ──▶ zip on sys.path ── use_unpacked ──▶ CACHE/package-HASH in front of it

Kernels compiled from a zip would be compiled anew in every session, since numba keeps them by the file's path, and
Spark puts the zip elsewhere each time. A folder that is named after its content is the same one in the next session.
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

from spark.private_folder import private_folders

PACKAGES = (
    "cli", "exchange", "experiments", "gateway", "matching_engine", "messaging", "reports", "runs", "spark",
    "stats_reporter", "transports",
)  # fmt: skip
NAME = "exchange_packages.zip"
FOLDER = "package-"
UNUSED_AFTER_S = 7 * 24 * 3600
FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def package_zip(folder: Path) -> Path:
    """All that is imported, and the data beside it; the same bytes for the same sources."""
    root, target = Path(__file__).parents[1], folder / NAME
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*") if _belongs(path)):
            file.writestr(zipfile.ZipInfo(str(path.relative_to(root)), FIRST_DATE), path.read_bytes())
    return target


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def use_unpacked() -> None:
    """In an executor: import what is still to be imported from the unpacked folder, if there is a zip to unpack."""
    shipped = next((path for path in sys.path if path.endswith(f"/{NAME}")), None)
    if shipped is None:
        return
    folder = str(unpacked(Path(shipped)) or shipped)
    if folder not in sys.path or sys.path.index(folder) > sys.path.index(shipped):
        sys.path.insert(0, folder)


def unpacked(shipped: Path) -> Path | None:
    """The folder with this content; None where this user has no place to keep it."""
    place = next(private_folders(), None)
    if place is None:
        return None
    target = place / (FOLDER + hashlib.sha256(shipped.read_bytes()).hexdigest()[:16])
    if not target.is_dir():
        _sweep(place)
        _unpack(shipped, target)
    os.utime(target)
    return target


def _unpack(shipped: Path, target: Path) -> None:
    """By rename, since another executor may be at it as well."""
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


def _sweep(place: Path) -> None:
    """Packages of former versions, and what was left by those who were killed while they unpacked."""
    for folder in [*place.glob(f"{FOLDER}*"), *place.glob(f".{FOLDER}*")]:
        with suppress(OSError):  # someone else was quicker
            if time.time() - folder.stat().st_mtime > UNUSED_AFTER_S:
                shutil.rmtree(folder, ignore_errors=True)
