"""Measures how fast our own code is, against references of the same rule. `python -m benchmarks` runs all of it.

A benchmark is a module of this package with a function `rows(repeats)`, which yields a `BenchmarkRow` (see
`comparison.py`) for each comparison. References in C++ lie in `reference/` and are built where a compiler is found.
"""
