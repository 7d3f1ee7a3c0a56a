"""`exchange sweep`: all combinations of some run settings, described in a file or by options; repeated and compared."""
