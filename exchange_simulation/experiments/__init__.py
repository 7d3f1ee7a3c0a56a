"""Studies of many runs: comparisons, sweeps, capacity searches, simulations, and the statistics they share."""
