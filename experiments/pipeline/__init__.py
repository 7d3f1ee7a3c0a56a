"""`exchange spark`: Spark makes tables of many runs and summarizes them, here or on a cluster.

jobs ──▶ run_sources    which runs are below a folder
     └─▶ output         what the commands print
"""
