"""Tables of records: their columns, how a spool's lines become rows, how their files are written and read.

spool ──▶ schemas, files          lines to records, records to a table a kind
histograms                        log buckets of many rows, merged, and their figures
"""
