"""The market's events as typed columns, from recorded runs and simulations.

tables ──▶ order_messages           a block of the stream, with its answers, to Arrow rows of each table
order_history ──▶ order_messages    the sides of cancels and replaces, and what they take out of the book
"""
