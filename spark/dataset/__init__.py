"""Tables of many runs, in any folder that Hadoop's file systems reach.

    TABLES/manifest-000003.json                                            names every file of every table
    TABLES/completion/ingest=3/experiment=E/run=R/part-....parquet         a table a kind, a folder a run
    TABLES/summary/summary=4/part-....parquet                              the summary's tables

A reader takes the manifest with the highest number, and the files that it names. A job writes its manifest last, whole,
by rename, so files that a killed job left are in no table; a later job removes them.

    ingesting, summarizing ──▶ manifest ──▶ folder
"""
