"""The figures of a run and of each of its seconds, from its records; for a batch of runs and for the live table.

    traffic, process, throughput ──facts──▶ counts, rates, cores ─┐
    completion ──times──▶ figures of its log buckets ─────────────┴─measured─▶ a row a second, a row for the run

`exchange.seconds` says what a second is. A run has few records, however many its orders were, so Python summarizes it
once Spark has read its files. As a Spark plan of joins and windows 100 runs took 22 s in place of 13.
"""
