"""`exchange sweep`: a product of run settings, described in a file or by options; repeated, compared, reported."""
