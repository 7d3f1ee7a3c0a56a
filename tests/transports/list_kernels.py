"""Prints the kernels of links: `python list_kernels.py URL PATTERN URL PATTERN ...`.

PATTERN is that of a listener, or `subscriber` for the connector of a fanout, which needs no publisher to open.

A line for each link: `name:signatures` for each kernel of a module of transports. One forked process a link, so that
kernels compiled for one link do not count for the next. The imports are made once, before the forks.
"""

from __future__ import annotations

import os
import sys
import time

from numba.core.registry import CPUDispatcher

from transports.base import Pattern
from transports.registry import connect, listen


def kernels() -> dict[str, int]:
    """The number of compiled signatures of each kernel that is imported, by its name."""
    signatures = {}
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("transports."):
            continue
        for name, value in vars(module).items():
            if isinstance(value, CPUDispatcher):
                signatures[name] = len(value.signatures)
    return signatures


def print_kernels(url: str, pattern: str) -> None:
    if pattern == "subscriber":
        link = connect(url, "token", time.monotonic_ns(), Pattern.FANOUT)
    else:
        link = listen(url, "token", Pattern(pattern))
    print(*sorted(f"{name}:{count}" for name, count in kernels().items()), flush=True)
    link.close()


if __name__ == "__main__":
    for url, pattern in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        if os.fork() == 0:
            print_kernels(url, pattern)
            os._exit(0)
        os.wait()
