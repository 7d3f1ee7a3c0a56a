"""A window on a run that is under way: what its spool tells, drawn in the terminal once a second."""
