"""Tables of records: their columns, how a spool's lines become rows, how their files are written and read.

spool_tables, table_writer        a finished spool to tables, by Arrow; the problems of its lines
spool ──▶ schemas, spool_tables   lines to records in Spark, from files or a stream
files                             local tables and their locks; paths as Spark takes them
histograms                        log buckets of many rows, merged, and their figures
"""
