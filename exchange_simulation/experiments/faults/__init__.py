"""`exchange faults`: what breaks what. Each cell is a run over one transport, with one fault at a stated moment.

matrix ──▶ cell ──▶ injection    the faults: signals, broken connections, a broker's commands, a full disk
                └─▶ fate         what became of every order, from the run's record, its spool and its streams
"""
