"""A gateway with a session at each of several engines, among which the instruments are shared out."""
