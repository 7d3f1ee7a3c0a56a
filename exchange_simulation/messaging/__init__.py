"""The messaging benchmarks of the papers, `exchange bench`: one rig, and a file for each benchmark.

    launcher ──forks───▶ roles, which open their links and say ready     (or threads of its own process)
             ──start───▶ all at once
             ◀─result──  what each sent, received, checked, and used
             ──close───▶ once all have a result

A benchmark is a file of `benchmarks/` with a BENCHMARK (benchmark.py): points to vary, roles for a cell, a judge of the
answer, figures, columns, plots, and the paper's values. These files are for benchmarks:

| file | what |
|---|---|
| benchmark.py | BenchmarkDefinition; CapacityScale |
| point.py, cell.py | by_size and `by_size_and(option)`: points; Cell, Counts |
| presentation.py, paper.py | Column, Plot; Published |
| options.py | SIZES, COUNT, `numbers_option(...)`; a benchmark may add any click.Option; its value: `cell.settings` |
| roles.py | Role, RoleResult; Links makes ends of links: `pair(size)`, `many(size, pattern)`; check_descriptors |
| flow.py, requests.py | tasks of roles: Publish, Consume, ConsumeShared; Ask, Answer, ThreadedClient, RequestServer |
| message_load.py, paced.py | the load of a publisher; `--rate`: figures from due, by step, and whether it was kept |
| streams.py, requests.py | roles, judge, figures: Streams, PingPong; `wrong_with`: the reasons why an answer is wrong |
| session.py | Session, the argument of a task: links, waiting, round trips. A benchmark may have tasks of its own |
| round_trips.py | round trips in compiled code, over links that lend their calls |
| payload.py | MessageSource and Receipt: kernels that number, stamp and check messages |
| peaks.py, request_reply_paper.py | request-reply's peaks and sentences; its paper's values |
| supply_chain/ | the supply chain's tables, plan, agents and judge |

The rig itself, from the command down:

| file | what |
|---|---|
| running.py | `exchange bench NAME` and `suite`: measure, judge, write, show |
| suite.py, benchmark_record.py | the record of all benchmarks, and of one |
| expected_time.py | how long a benchmark will take on a quiet machine |
| cell_turns.py | all cells in turns, noisy ones again; the order and the rule are those of trials, in repeats/ |
| report.py, plots.py | tables and page; answer and ratios are those of reports/comparison/ |
| network_sentences.py | how each emulated network was made, and whether it is what was asked for |
| verdicts.py | which rows are compared, judged by repeats/ |
| measurements.py | which repeats count, and their medians |
| results.py, earlier.py | the folder in which bench.json grows; what an interrupted benchmark measured before |
| measuring.py, machine.py | one repeat of one cell; counters of the machine meanwhile |
| setup.py, setups.py | what the cells of one network share: plan, brokers, compiled kernels; a Setup for each network |
| kernel_loading.py | loads the links' compiled kernels before roles fork |
| role_process.py | a role's process or thread |
| by_hand.py | one role on a host of its own |
| hosts/ | roles on several hosts |
| turned_up.py | lends a benchmark with a CapacityScale to `exchange capacity` |
"""
