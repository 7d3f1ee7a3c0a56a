"""The error of a system that starts no further process or thread: what did not start, and the limit to raise."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from exchange_simulation.launching.errors import CannotStart

MOST_IS_REACHED = errno.EAGAIN
"""The error of a fork beyond a limit on processes and threads: the user's, or that of a container."""


@contextlib.contextmanager
def starting(what: str) -> Iterator[None]:
    """Raise CannotStart if the context cannot start a process because too many are there, or for want of memory."""
    try:
        yield
    except OSError as error:
        if error.errno == MOST_IS_REACHED:
            raise too_many_processes(what) from error
        if error.errno == errno.ENOMEM:
            raise CannotStart(
                f"cannot start {what}: no memory is left for a further process: free some, or ask for fewer processes"
            ) from error
        raise


def too_many_processes(what: str) -> CannotStart:
    """Return the error of something that did not start because the system allows no further process or thread."""
    return CannotStart(
        f"cannot start {what}: the system allows no further process or thread (ulimit -u is {_most_of_user()}; "
        "a container may have a limit of its own, as docker's --pids-limit): end other processes, raise the limit, "
        "or ask for fewer"
    )


def _most_of_user() -> str:
    """Return the most processes and threads that the user may have."""
    try:
        import resource  # some systems on which components run have none

        most, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    except (ImportError, AttributeError):
        return "unknown"
    return "unlimited" if most == resource.RLIM_INFINITY else str(most)
