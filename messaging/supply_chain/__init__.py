"""The supply chain of a supermarket company: the workload of Sachs, Kounev, Bacon and Buchmann.

messages.py        the paper's tables 1 to 3: who sends what to whom, in which group, how large
topologies.py      how many locations there are, and how often each begins an interaction
plan.py            the traffic that follows from both, by the paper's equations; in_words.py prints it, and what passed
chain.py           who serves whom, and when each location begins what
agent.py           a process that plays locations: it handles what comes, and begins interactions
post.py            its links: what waits to be sent, and a broker that goes and comes back
ledger.py          what it sent and received, message by message; a message's head
deployment.py      which agent plays which locations, and its links
restart.py         a broker that is restarted in the middle
judging.py         whether a run kept to its plan, and its figures
paper.py           the figures of the paper, and what its table 5 prints
"""
