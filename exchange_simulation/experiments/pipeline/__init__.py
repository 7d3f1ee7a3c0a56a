"""`exchange spark`: Spark makes tables of many runs and summarizes them, here or on a cluster.

jobs ──▶ run_sources    which runs are below a folder
sql ──▶ a query over the tables: `sql`, `bars`, `samples`
live ──▶ a query over each run that goes on
"""
