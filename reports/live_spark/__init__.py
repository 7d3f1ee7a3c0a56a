"""`exchange spark live` and `exchange run --live-spark`: what a streaming query says of runs, in the terminal."""
