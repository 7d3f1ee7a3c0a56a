"""Structured Streaming follows a run's spool as it grows; docs/spark-live.md has the procedure.

RUN/spool/*.jsonl --query, checkpoint--> batch N --foreachBatch--> RUN/live/records/N.parquet   every line, once
                                                                   RUN/live/seconds, TABLES/live   a row a second
                                                                   RUN/live/notes/N.json        its summary, at last

    query ──▶ table ──▶ folder ──▶ batch ──▶ records
"""
