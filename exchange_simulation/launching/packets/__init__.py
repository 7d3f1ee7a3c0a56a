"""Table 1 of the paper: the packets of a run, by the kernel's counters, which tcpdump can check."""
