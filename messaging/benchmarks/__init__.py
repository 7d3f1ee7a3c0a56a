"""One file per benchmark, found by its name: `de-spsc` is de_spsc.py, and declares BENCHMARK."""
