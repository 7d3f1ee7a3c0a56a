"""Tables of records: their columns, how a spool's lines become rows, how their files are written and read.

spool_tables ──▶ schemas          a finished spool to tables, by Arrow; the problems of its lines
spool ──▶ schemas, spool_tables   lines to records in Spark, from files or a stream
files ──▶ table_writer            local tables and their locks; paths as Spark takes them; Parquet in bounded memory
histograms                        log buckets of many rows, merged, and their figures
"""
