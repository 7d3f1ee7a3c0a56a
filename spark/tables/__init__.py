"""Tables of records: their columns, how a spool's lines become rows, how their files are written and read.

An arrow means: imports.

spool_by_arrow ──▶ schemas, problems   a finished spool to tables, in this process
spool_by_spark ──▶ schemas, problems   the same lines to records in Spark, from a stream
files ──▶ table_writer                 local tables, their locks, paths as Spark takes them; Parquet in bounded memory
histograms                             log buckets of many rows, merged, and their figures
"""
