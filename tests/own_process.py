"""Runs a part of a test in a new Python process, whose state no other test has changed."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

from tests.machine import PATIENCE_S

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def in_own_process(
    function: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
) -> Result:
    """Call a function of a module in a new process; return its value, or raise its error."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result(PATIENCE_S)
