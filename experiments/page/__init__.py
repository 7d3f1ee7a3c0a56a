"""A run's page, `report.html`: one offline file, made from `run.json` and the spool; without Spark.

Nothing is imported here: some of these rooms draw, and what draws takes a third of a second to import.
"""
