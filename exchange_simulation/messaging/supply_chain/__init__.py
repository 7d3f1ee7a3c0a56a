"""The supply chain of a supermarket company: the workload of Sachs, Kounev, Bacon and Buchmann.

the paper's tables, messages.py ──▶ plan.py, what will flow ──▶ chain.py, who begins what when
deployment.py, agents at a broker or without one ──▶ agent.py, one at work, with post.py and ledger.py ──▶ judging.py
"""
