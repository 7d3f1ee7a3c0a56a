"""A run that is under way, in the terminal: its last minute as graphs, its seconds as Spark's rows."""
