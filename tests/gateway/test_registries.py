"""Arrivals, price models, order types and policies: a word without its generator or kernel is an error at birth."""

from __future__ import annotations

import subprocess
import sys

import pytest

from exchange.allowed import check_registry
from exchange.settings import POLICIES
from exchange.workload import ARRIVALS, PRICE_MODELS
from gateway.due_times import GENERATORS
from gateway.seeded_orders import WRITERS
from matching_engine.order_book import IS_EXACT


def test_every_word_has_its_generator_or_kernel_and_no_other_has() -> None:
    assert GENERATORS.keys() == ARRIVALS.keys()
    assert WRITERS.keys() == PRICE_MODELS.keys()
    assert IS_EXACT.keys() == POLICIES.keys()


EACH_ALONE = """
import os, sys
import numba
from exchange import messages, settings, workload

for word_alone, imported in zip(sys.argv[1::2], sys.argv[2::2]):
    if os.fork() == 0:
        try:
            exec(word_alone)
            __import__(imported)
            print("imported", flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.wait()
"""
"""Says for each word what came of the import, which a process of its own makes; all share what they import anyway."""

ALONE = [
    ("workload.ARRIVALS['sine'] = workload.ARRIVALS['fixed']", "gateway.due_times", "no entry for ['sine']"),
    ("workload.PRICE_MODELS['log'] = False", "gateway.seeded_orders", "no entry for ['log']"),
    ("del workload.PRICE_MODELS['wide']", "gateway.seeded_orders", "entries of no known word: ['wide']"),
    ("messages.ORDER_TYPES += (messages.Quote,)", "matching_engine.kernels", "no kernel for Quote"),
    ("settings.POLICIES['pro-rata'] = 3", "matching_engine.order_book", "no entry for ['pro-rata']"),
]


def test_a_word_added_alone_does_not_import() -> None:
    words = [word for word_alone, imported, _ in ALONE for word in (word_alone, imported)]
    run = subprocess.run([sys.executable, "-c", EACH_ALONE, *words], capture_output=True, text=True, check=True)
    for said, (_, _, error) in zip(run.stdout.splitlines(), ALONE, strict=True):
        assert said.startswith("LookupError: ")
        assert error in said


def test_a_registry_names_the_words_that_it_lacks() -> None:
    with pytest.raises(LookupError, match=r"LIST: no entry for \['b'\]; entries of no known word: \['c'\]"):
        check_registry("LIST", {"a": 1, "c": 2}, ["a", "b"])
