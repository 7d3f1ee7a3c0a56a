"""Tables of many runs, in any folder that Hadoop's file systems reach. Every reader reads them right at any moment.

    TABLES/completion/experiment=E/part-0.parquet      a table a kind; a file holds whole runs, up to RUNS_A_FILE
    TABLES/runs/experiment=E/part-0.parquet            a row a run: the facts of its run.json
    TABLES/summary/part-0.parquet                      the summary's tables, each one file

Arrow makes the tables of records and events, a run at a time, in this process; Spark makes the summary's tables.
A job writes whole files into a hidden folder, renames that folder, which makes the job count, and then moves each file
to its place by rename. What a killed job had not yet moved, the next one moves.

An arrow means: imports. What is behind another is left out where it follows.

    ingesting ──▶ part_files ─┐
    summarizing ──────────────┴─▶ replacing ──▶ runs ──▶ folder ◀── hadoop_folder ◀── folder_of_url
    views ───────────────────────────────────────┘
"""
