"""Trials: runs of planned settings, interleaved and repeated, and what their repeats say. Knows no transport."""
