"""Numbers, times, ratios, estimates, settings and the seconds of a run as text, for pages and terminal."""
