"""Tables of many runs, at any place that Hadoop's file systems reach.

    PLACE/manifest-000003.json                                            what counts: every file of every table
    PLACE/completion/ingest=3/experiment=E/run=R/part-....parquet         a table a kind, a folder a run
    PLACE/summary/summary=4/part-....parquet                              what was made of them

A reader takes the manifest with the highest number, and the files that it names: it comes last, whole, by rename, so
what a killed job left is in no table. A later job removes it.
"""
