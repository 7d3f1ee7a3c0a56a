"""Kernels kept on disk: numba notices edits of a kernel's own file, not of the files whose constants it freezes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, TypeVar, cast
from zlib import crc32

import numba

P = ParamSpec("P")
R = TypeVar("R")


def fingerprint(*modules: ModuleType) -> int:
    """Another number once the source of one of them is another."""
    return crc32(b"".join(Path(str(module.__file__)).read_bytes() for module in modules))


def cached_kernel(*frozen: ModuleType) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compiled, without the interpreter's lock; anew when one of these modules, whose constants it uses, changes."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        function.__qualname__ += f"_{fingerprint(*frozen):08x}"  # names the file on disk
        return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))

    return decorate
