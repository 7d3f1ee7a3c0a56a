"""Table 1 of the paper: packets of a run, by the kernel's counters, and by tcpdump as a check of them."""
