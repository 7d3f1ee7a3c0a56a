"""Figures over the tables, each a statement in a file of SQL, a view by the file's name, and a function of Python.

tables of records and events ──views──▶ NAME.sql ──parameters──▶ `views.NAME(spark, ...)`: a DataFrame
"""
