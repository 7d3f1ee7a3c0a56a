"""The five papers: what measures each, its figures and tables, and its sentences as claims that a measurement tests.

| file | what it is |
|---|---|
| paper.py | Paper, and the parts that measure it |
| capacity_part.py, compared_part.py | two further kinds of parts: a search, a comparison of transports |
| claims.py | Claim, and the test of all claims of a paper together |
| readings.py | a figure by repeat, and the noise behind it |
| statistics.py | what a claim is about: ratios of measured figures, by repeat |
| amqp.py, mrg.py, zeromq.py, request_reply.py, supply_chain.py | one paper each |
| catalogue.py | the papers by name, and the list of all their figures and tables |
| paper_folder.py | reads a paper's folder, and tests its claims |
| measuring.py | `exchange paper NAME`: measures the parts, writes the record and the page |
| planned.py | the commands, and about how long each takes |
| table_1.py, beside_ours.py | values that a paper prints, beside ours |
| sentences.py, page.py, terminal.py | the outcome in sentences, as a page, and in the terminal |
| reporting.py | `exchange report` of a paper's folder |
| listing.py | `exchange paper list`, and the list of all figures and tables with their commands |
| exporting.py | `--export`: what an artefact review asks for |
"""
