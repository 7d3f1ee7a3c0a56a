"""Structured Streaming follows a run's spool as it grows; docs/spark-live.md has the procedure.

RUN/spool/*.jsonl --query, checkpoint--> batch N --foreachBatch--> RUN/live/records/M.parquet   every line, once
                                                                   RUN/live/seconds, TABLES/live   a row a second
                                                                   RUN/live/state.json          counts, written last

An arrow of these means: imports.

    query ──▶ table ──▶ record_files ──▶ facts
      │         └─────▶ facts, folder, records
      └───────────────▶ folder, records
"""
