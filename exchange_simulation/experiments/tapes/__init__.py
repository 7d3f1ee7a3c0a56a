"""Tapes from elsewhere, and the statistics of a tape."""
