"""The messaging benchmarks of the papers, `exchange bench`: one rig, and a file for each benchmark.

    launcher ──forks──▶ roles, which open their links and say ready     (threads, over what cannot leave a process)
             ──start─▶  all at once: the barrier
             ◀─told──   what each sent, received, checked, and used
             ──close─▶  once everybody has told

A benchmark is a file of `benchmarks/` with a BENCHMARK (benchmark.py): points to vary, roles for a cell, a judge of the
answer, figures of what was told, columns, plots, and what its paper printed. What it needs is here:

| room | what |
|---|---|
| roles.py | End, Role, Told: who opens what, what a role tells |
| places.py | ends of a new link, at a free port, or with queues of its own at the broker: `pair(size)`, `queue(...)` |
| flow.py, bounce.py | parts that roles play: Publish, Consume, ConsumeShared; Ask, Answer |
| player.py | what a part is called with: links, patience; it returns a Told. A benchmark may bring parts of its own |
| payload.py | Source and Receipt: kernels that number, stamp and check messages |
| answer.py | `wrong_with(senders, receivers, expected)`: what is wrong, as sentences |
| reckoning.py | `flow_figures(size, receivers)`: rates and latency |
| options.py | SIZES, COUNT; any click.Option is an option of the benchmark, and in `cell.asked` by its name |
| crew.py, forks.py | processes: start, barrier, who died, end |
| stage.py, measuring.py, running.py | brokers and the like, one repeat of a cell, all of them |
| room.py, descriptors.py | whether the shell allows as many descriptors, before the first cell |
| results.py, table.py, figures.py, page.py | rows with intervals, terminal, SVG, HTML |
"""
