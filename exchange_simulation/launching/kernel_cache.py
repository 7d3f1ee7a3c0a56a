"""The folder in which numba keeps compiled kernels: chosen, and cleared of damaged files, before numba is imported.

numba itself takes the folder of NUMBA_CACHE_DIR; else `__pycache__` beside the source; else a folder of the user's
cache. Where it can use none of them, or the disk is full, or a file is damaged, every command would end in a traceback.
So we look first, by numba's own rules, and set NUMBA_CACHE_DIR if another folder has to be taken.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import exchange
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.kernel_checksums import files_changed_in_place
from exchange_simulation.launching.notices import say

VARIABLE = "NUMBA_CACHE_DIR"
SETTLED_VARIABLE = "EXCHANGE_KERNELS_SETTLED"
SETTLED = {SETTLED_VARIABLE: "1"}
"""The variable of components: their launcher has looked at the folder, so they need not."""
LEAST_ROOM_BYTES = 8 << 20
"""The kernels of all transports and components take some 2 MiB."""
ROOT = Path(exchange.__file__).parent.parent
ROOMS = ("exchange", "exchange_simulation", "gateway", "matching_engine", "transports")
"""The packages with kernels."""
FIRST_BYTE = b"\x80"
LAST_BYTE = b"."
"""Every file of numba's is a pickle, which begins and ends so."""
LEAST_BYTES = 2
CHECKSUMS = "exchange-kernels.crc"
"""The file with the checksums of kernels, in the folder that keeps them."""


@dataclass(frozen=True)
class KernelFolder:
    """The folder that is taken."""

    path: Path | None
    """None for `__pycache__` beside each source file."""
    problem: str = ""
    """Why numba's own choice is not taken; empty if it is."""
    is_lasting: bool = True
    """False if the folder ends with this command."""
    is_usable: bool = True
    """False if no folder can be written to."""

    @property
    def description(self) -> str:
        """The folder as a sentence names it."""
        return str(self.path) if self.path else f"{ROOT}, beside their sources"


def settle_kernel_cache() -> None:
    """Choose the folder for kernels, and remove damaged files from it. Call it before numba is imported.

    The user is told of a folder that is not numba's own choice. UserError if no folder can be written to.
    """
    if SETTLED_VARIABLE in os.environ:
        return
    folder = settled_folder()
    if not folder.is_usable:
        raise UserError(f"{folder.problem}: name a folder that can be written to, with {VARIABLE}")
    if folder.problem:
        end = "" if folder.is_lasting else ", for this command alone, and compiled anew by the next one"
        say(f"{folder.problem}: kernels are kept in {folder.description}{end}")
    if folder.path is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = str(folder.path)
    for file in damaged_files(folder):
        with contextlib.suppress(OSError):
            file.unlink()


@cache
def settled_folder() -> KernelFolder:
    """The folder that this process takes, for good: it is chosen at the first call."""
    folder = choose_folder()
    return folder if folder.is_lasting else _folder_of_this_command(folder.problem)


def choose_folder() -> KernelFolder:
    """Return the folder to take; nothing is made or changed."""
    given = os.environ.get(VARIABLE, "")
    reason = ""
    if given:
        problem = problem_with(Path(given))
        if not problem:
            return KernelFolder(Path(given))
        reason = f"{VARIABLE} is {given}, which {problem}"
    if not problem_with(ROOT / "exchange" / "__pycache__"):
        return KernelFolder(None, reason)
    of_user = _cache_of_user()
    if of_user is not None and not problem_with(of_user):
        return KernelFolder(of_user, reason)
    reason_for_temporary = reason or f"neither {ROOT} nor the user's cache folder can keep compiled kernels"
    shared = _folder_in_temporary()
    if shared is not None and not problem_with(shared) and _is_private_or_missing(shared):
        return KernelFolder(shared, reason_for_temporary)
    return KernelFolder(None, reason_for_temporary, is_lasting=False)


def problem_with(folder: Path) -> str:
    """Why a folder cannot keep kernels, as the end of a sentence; empty if it can. It need not exist yet."""
    try:
        existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
        if not existing.is_dir():
            return f"cannot be a folder, since {existing} is none"
        if not os.access(existing, os.W_OK | os.X_OK):
            return "cannot be written to"
        disk = os.statvfs(existing)
    except OSError as error:
        return f"cannot be used ({error.strerror})"
    if disk.f_bavail * disk.f_frsize < LEAST_ROOM_BYTES:
        return "is on a full disk"
    return ""


def _cache_of_user() -> Path | None:
    """The folder that numba takes in the user's cache; None for a user without a home."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "numba" if cache.startswith("/") else None


def _folder_in_temporary() -> Path | None:
    """A folder of this user among temporary files; None if this machine has no place for temporary files."""
    try:
        return Path(tempfile.gettempdir()) / f"exchange-kernels-{os.geteuid()}"
    except FileNotFoundError:
        return None


def _is_private_or_missing(folder: Path) -> bool:
    """False if somebody else could put a file there: numba executes what it loads."""
    try:
        about = os.lstat(folder)
    except FileNotFoundError:
        return True
    is_own_folder = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    modes_of_others = stat.S_IMODE(about.st_mode) & 0o077
    return is_own_folder and modes_of_others == 0


def _folder_of_this_command(reason: str) -> KernelFolder:
    """Make a folder that is removed when this process ends; an unusable one if there is no place for it."""
    try:
        place = Path(tempfile.gettempdir())
        problem = problem_with(place)
        if problem:
            return KernelFolder(None, f"{reason}, and {place} {problem}", is_lasting=False, is_usable=False)
        folder = tempfile.mkdtemp(prefix="exchange-kernels-")
    except OSError as error:
        problem = f"{reason}, and no temporary folder can be made ({error.strerror})"
        return KernelFolder(None, problem, is_lasting=False, is_usable=False)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return KernelFolder(Path(folder), reason, is_lasting=False)


def kernel_files(folder: KernelFolder) -> Iterator[Path]:
    """The files of kernels in a folder: indexes (.nbi) and machine code (.nbc)."""
    places = [ROOT / room for room in ROOMS] if folder.path is None else [folder.path]
    for place in places:
        for directory, _, names in os.walk(place):
            for name in names:
                if name.endswith((".nbi", ".nbc")):
                    yield Path(directory, name)


def damaged_files(folder: KernelFolder) -> list[Path]:
    """The files of a folder that are damaged, or were changed in place since the last command."""
    place = ROOT / "exchange" / "__pycache__" if folder.path is None else folder.path
    files = list(kernel_files(folder))
    damaged = [file for file in files if is_damaged(file)]
    return [*damaged, *files_changed_in_place(files, place / CHECKSUMS)]


def is_damaged(file: Path) -> bool:
    """True if a file was emptied, cut short or overwritten. Checksums notice damage in its middle."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False  # it was replaced meanwhile, or is not ours
    try:
        size = os.fstat(descriptor).st_size
        if size < LEAST_BYTES:
            return True
        return os.pread(descriptor, 1, 0) != FIRST_BYTE or os.pread(descriptor, 1, size - 1) != LAST_BYTE
    finally:
        os.close(descriptor)
