"""The market's events as typed columns, from recorded runs and simulations.

tables            makes Arrow rows of each table from a block of messages and the answers to them
order_history     finds the side of each cancel and replace, and the lots that it takes out of the book
order_messages    has the blocks of messages that both others take
"""
