"""A run's spool as it grows, followed by Structured Streaming: docs/spark-live.md has the procedure.

RUN/spool/*.jsonl --query, checkpoint--> batch N --foreachBatch--> RUN/live/records/N.parquet   every line, once
                                                                   RUN/live/seconds/N.parquet   the rows that changed
                                                                   RUN/live/notes/N.json        what it added; the last
"""
