"""Figures over the tables of records and events.

Each figure is a statement of SQL in a file NAME.sql. It can be used as the view NAME, and as the Python function
`NAME(spark, ...)` of views.py, which fills in the statement's parameters and returns a DataFrame.
"""
