"""Repeats of anything that is measured: which of them count, and whether two things differ beyond chance.

Trials of runs, messaging benchmarks and searches for a capacity use this package. The package knows no run, no
benchmark and no folder.
"""
