"""`exchange spark`: the tables of many runs, made and summarized by Spark, here or on a cluster."""
