"""Whether this shell allows as many descriptors as are needed: said before anything is started."""

from __future__ import annotations

import resource

from runs.errors import UserError

SPARE = 64
"""For what a process has open besides."""


def check_descriptors(needed: int, who: str) -> None:
    """UserError; `who` needs them, as `128 roles need a descriptor each`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and needed + SPARE > soft:
        raise UserError(
            f"{who}, and this shell allows {soft}: ask for fewer, or raise the limit with ulimit -n {needed + SPARE}"
        )
