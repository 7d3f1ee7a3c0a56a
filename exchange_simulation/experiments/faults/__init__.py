"""`exchange faults`: a matrix of runs. Each cell is a run over one transport, with one fault at a stated moment.

matrix ──▶ cell ──▶ load         the load of every run, and the moment of the fault
                ├─▶ run          `exchange run` in a process of its own, and its record
                ├─▶ injection    the faults: signals, broken connections, a broker's commands, a full disk
                └─▶ fate         the fate of every order, from the run's record, its spool and its streams
"""
