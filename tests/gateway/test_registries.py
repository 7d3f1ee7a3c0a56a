"""Arrivals, price models, order types and policies: a word without a generator or kernel is an error at import."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

import pytest

from exchange.allowed import check_registry
from exchange.settings import POLICIES
from exchange.workload import ARRIVALS, PRICE_MODELS
from gateway.due_times import GENERATORS
from gateway.seeded_orders import WRITERS
from matching_engine.order_book import IS_EXACT


def test_words_and_generators_or_kernels_match_one_to_one() -> None:
    assert GENERATORS.keys() == ARRIVALS.keys()
    assert WRITERS.keys() == PRICE_MODELS.keys()
    assert IS_EXACT.keys() == POLICIES.keys()


IMPORT_IN_FORKS = """
import os, sys
import numba
from exchange import messages, settings, workload

for statement, module in zip(sys.argv[1::2], sys.argv[2::2]):
    if os.fork() == 0:
        try:
            exec(statement)
            __import__(module)
            print("imported", flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.wait()
"""
"""Prints a line for each pair of a statement and a module: how the module's import ends after the statement.

Each pair has a forked process. The slow imports that all need are made once, before the forks."""


class UnmatchedWord(NamedTuple):
    statement: str
    """Adds a word without its generator or kernel, or removes a word that has one."""
    module: str
    """The module that checks the words."""
    error: str
    """A part of the error of the module's import."""


UNMATCHED_WORDS = [
    UnmatchedWord(
        "workload.ARRIVALS['sine'] = workload.ARRIVALS['fixed']", "gateway.due_times", "no entry for ['sine']"
    ),
    UnmatchedWord("workload.PRICE_MODELS['log'] = False", "gateway.seeded_orders", "no entry for ['log']"),
    UnmatchedWord("del workload.PRICE_MODELS['wide']", "gateway.seeded_orders", "entries of no known word: ['wide']"),
    UnmatchedWord("messages.INCOMING_TYPES += (messages.Quote,)", "matching_engine.kernels", "no kernel for Quote"),
    UnmatchedWord("settings.POLICIES['pro-rata'] = 3", "matching_engine.order_book", "no entry for ['pro-rata']"),
]


def test_a_word_without_a_generator_or_kernel_fails_the_import() -> None:
    arguments = []
    for word in UNMATCHED_WORDS:
        arguments += [word.statement, word.module]
    script = [sys.executable, "-c", IMPORT_IN_FORKS, *arguments]
    run = subprocess.run(script, capture_output=True, text=True, check=True)
    for line, word in zip(run.stdout.splitlines(), UNMATCHED_WORDS, strict=True):
        assert line.startswith("LookupError: ")
        assert word.error in line


def test_a_registry_s_error_names_missing_and_unknown_words() -> None:
    with pytest.raises(LookupError, match=r"LIST: no entry for \['b'\]; entries of no known word: \['c'\]"):
        check_registry("LIST", {"a": 1, "c": 2}, ["a", "b"])
