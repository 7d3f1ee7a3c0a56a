"""`exchange spark`: tables of many runs, which Spark summarizes and queries, here or on a cluster.

jobs ──▶ run_sources    `ingest`, `summary`, `prepare`, `submit`; the runs below a folder
sql                     `sql`, `bars`, `samples`: a query over the tables
live                    `live`: a query over each run under way
"""
