"""The supply chain of a supermarket company: the workload of Sachs, Kounev, Bacon and Buchmann.

messages.py, topologies.py   the paper's tables, and how many locations there are
plan.py, plan_tables.py      the planned traffic, and its tables for `--plan`
chain.py                     who serves whom, and when each location begins its interactions
deployment.py                agents and their links, at a broker or without one
agent.py, post.py, ledger.py an agent at work, its links, and its counts
judging.py, summary.py       whether a run kept to its plan, its figures, and sentences
paper_figures.py             the paper's values, and the plots of its figures
"""
